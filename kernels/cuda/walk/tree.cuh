/* tree: the kernel of products of floats, by blocks of the fixed tree (fold/float_prod.cuh).
 *
 * Thread: GPU; the launcher is called by the stream's thread. */
#ifndef CURED_KERNELS_CUDA_WALK_TREE_CUH
#define CURED_KERNELS_CUDA_WALK_TREE_CUH

#include "kernels/cuda/fold/float_prod.cuh"

/* What a warp has found on its group: to where the last block of threads looks for it. */
CR_DEVICE void cr_prod_leave(cr_prod_found *found, const cr_prod_plan &plan, uint32_t group, const cr_prod_stack &stack,
                             uint32_t count) {
    const uint64_t number = (plan.first >> plan.level) + group, from = number << plan.level;
    const bool whole = from >= plan.first && from + ((uint64_t)1 << plan.level) <= plan.end;
    if (whole) {
        found->nodes[group] = stack.nodes[0];
    } else if (group == 0) {
        for (uint32_t i = 0; i < count; i++) found->first[i] = stack.nodes[i];
    } else {
        for (uint32_t i = 0; i < count; i++) found->last[i] = stack.nodes[i];
    }
    if (group == 0) found->firsts = whole ? 0 : count;
    if (group + 1 == plan.groups && group != 0) found->lasts = whole ? 0 : count;
    if (plan.groups == 1) found->lasts = 0;
}

CR_DEVICE cr_prod_node cr_prod_read(const cr_prod_node *from) {
    union {
        cr_prod_node node;
        unsigned long long word[sizeof(cr_prod_node) / 8];
    } copy;
#pragma unroll
    for (unsigned i = 0; i < sizeof(cr_prod_node) / 8; i++) copy.word[i] = __ldcg((const unsigned long long *)from + i);
    return copy.node;
}

/* Joins the whole groups' nodes level by level, in place, and writes all nodes by rising place. A range of nodes of one level
 * whose ends have no sibling leaves them as they are. All threads of the last block. */
CR_DEVICE void cr_prod_join_groups(cr_prod_found *found, const cr_prod_plan &plan, cr_float_prod *out) {
    const uint32_t firsts = __ldcg(&found->firsts), lasts = __ldcg(&found->lasts);
    uint32_t low = firsts != 0, high = plan.groups - (lasts != 0), count = 0, rights = 0;
    uint64_t number = (plan.first >> plan.level) + low; /* of nodes[low] on its level */
    cr_prod_node *nodes = found->nodes;
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < firsts; i++) out->nodes[count++] = cr_prod_read(&found->first[i]);
    }
    __shared__ cr_prod_node right[CR_PROD_DEPTH];
    while (low < high) {
        if (number & 1 || low + 1 == high) {
            if (threadIdx.x == 0) out->nodes[count++] = cr_prod_read(&nodes[low]);
            low++;
            number++;
        }
        if ((high - low) & 1) {
            high--;
            if (threadIdx.x == 0) right[rights++] = cr_prod_read(&nodes[high]);
        }
        const uint32_t pairs = (high - low) / 2;
        for (uint32_t done = 0; done < pairs; done += CR_GPU_THREADS) {
            const uint32_t i = done + threadIdx.x;
            cr_prod_node node = {};
            if (i < pairs)
                node = cr_prod_parent(cr_prod_read(&nodes[low + 2 * i]), cr_prod_read(&nodes[low + 2 * i + 1]));
            __syncthreads();
            if (i < pairs) nodes[low + i] = node;
            __syncthreads();
        }
        high = low + pairs;
        number /= 2;
    }
    if (threadIdx.x != 0) return;
    while (rights != 0) out->nodes[count++] = right[--rights];
    for (uint32_t i = 0; i < lasts; i++) out->nodes[count++] = cr_prod_read(&found->last[i]);
    out->count = count;
    out->lost = false;
}

template <cr_dtype D>
__global__ void __launch_bounds__(CR_GPU_THREADS, 2)
    cr_float_product(const __grid_constant__ cr_fold_args args, const __grid_constant__ cr_prod_plan plan) {
    __shared__ cr_prod_stack stacks[CR_WARPS];
    const uint32_t warp = threadIdx.x / CR_WARP, group = blockIdx.x * CR_WARPS + warp;
    cr_prod_found *found = (cr_prod_found *)args.state->blocks;
    cr_prod_state *state = &args.state->prod;
    if (group < plan.groups) {
        const uint64_t from = ((plan.first >> plan.level) + group) << plan.level,
                       to = from + ((uint64_t)1 << plan.level);
        const uint64_t begin = max(from, plan.first), end = min(to, plan.end);
        cr_prod_lane lane = {0, 0, 0, 0, 0};
        cr_wide<1> counts[3];
        uint32_t nodes = 0;
        for (int i = 0; i < 3; i++) counts[i].clear();
        for (uint64_t block = begin; block < end; block++) {
            const uint64_t at = (block - plan.first) * CR_PROD_BLOCK, rest = args.n - at;
            cr_prod_node node =
                cr_prod_block<D>(args.data + at * cr_width(D), (uint32_t)min(rest, (uint64_t)CR_PROD_BLOCK), lane);
            node.place = 2 * block + 1;
            if (threadIdx.x % CR_WARP == 0) nodes = stacks[warp].push(node, nodes);
            counts[0].word[0] += lane.nans;
            counts[1].word[0] += lane.zeros;
            counts[2].word[0] += lane.infs;
            lane.nans = lane.zeros = lane.infs = 0;
        }
        const uint32_t negative = __reduce_xor_sync(CR_EVERYONE, lane.signs);
        for (int i = 0; i < 3; i++) {
            counts[i].warp_sum();
            if (threadIdx.x % CR_WARP == 0 && counts[i].word[0] != 0) {
                atomicAdd(&state->special[i], (unsigned long long)counts[i].word[0]);
            }
        }
        if (threadIdx.x % CR_WARP == 0) {
            if (negative) atomicAdd(&state->special[3], 1ull);
            cr_prod_leave(found, plan, group, stacks[warp], nodes);
        }
    }
    if (!cr_last_block(args)) return;
    cr_float_prod *out = &args.slot->partial.float_prod;
    cr_prod_join_groups(found, plan, out);
    if (threadIdx.x != 0) return;
    out->nans = __ldcg(&state->special[0]);
    out->zeros = __ldcg(&state->special[1]);
    out->infs = __ldcg(&state->special[2]);
    out->negative = (__ldcg(&state->special[3]) & 1) != 0;
    for (int i = 0; i < 4; i++) state->special[i] = 0;
}

template <cr_dtype D>
int cr_float_product_launch(const cr_fold_args *args, void *stream) {
    const cr_prod_plan plan = cr_prod_plan_make(args->n, args->index);
    cr_fold_args given = *args;
    given.plan.blocks = (plan.groups + CR_WARPS - 1) / CR_WARPS;
    return CR_LAUNCH(cr_float_product<D>, given.plan.blocks, CR_GPU_THREADS, stream, given, plan);
}

#endif
