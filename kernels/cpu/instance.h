/* instance: makes one instance of a template, for one lane width or one element type. This is the one place that says which
 * names a template has.
 *
 * Instruction sets. fold_<isa>.c and axis_<isa>.c define VB, the bytes of a vector, and VEC_AVX2 or VEC_AVX512 (portable:
 * neither), then include fold_impl.h or axis_impl.h. All that those include is compiled once for each instruction set.
 *
 * Templates. Who wants instances names the template's file in TEMPLATE, and for each instance defines one switch and includes
 * this file, which gives the template its names, includes it, and takes names and switch away:
 *
 *   switch         a template of       its names
 *   LANE 8 … 64    integers            NAMED(x) is x_8 …; VU, VS: vectors of them; SCALAR: one; VF: floats as wide (32, 64);
 *                                      VMIN, VMAX: of VS
 *   FOR_F64        float64             NAMED(x) is x_f64; VU, VS, VF; UNSIGNED, SIGNED, FLOAT: one of each;
 *                                      LEAST, MOST, MIN, MAX: of VF (fold_fused.h says what sets them apart)
 *   FOR_F32        float32             the same, as x_f32
 *   FOR_BF16       bfloat16            the same as of float32, which its elements are widened to; NAMED(x) is x_bf16
 *   FOR_F16        float16             the same, as x_f16
 *
 * FOR_SQUARE beside FOR_… stands for all instances until its definer takes it away: NAMED(x) is x_f32_square, and SQUARE is 1
 * where it otherwise is 0.
 *
 * Thread: any; a template says the rest. */
#define GLUE_(a, b) a##b
#define GLUE(a, b) GLUE_(a, b)

#if defined(FOR_SQUARE)
#define SQUARE 1
#define OF_TYPE(name, type) GLUE(name, _##type##_square)
#else
#define SQUARE 0
#define OF_TYPE(name, type) GLUE(name, _##type)
#endif

#if defined(LANE)
#define NAMED(name) GLUE(name##_, LANE)
#define VU GLUE(vu, LANE)
#define VS GLUE(vs, LANE)
#define VF GLUE(vf, LANE)
#define SCALAR GLUE(GLUE(int, LANE), _t)
#define VMIN GLUE(min_vs, LANE)
#define VMAX GLUE(max_vs, LANE)
#elif defined(FOR_F64)
#define NAMED(name) OF_TYPE(name, f64)
#define VU vu64
#define VS vs64
#define VF vf64
#define UNSIGNED uint64_t
#define SIGNED int64_t
#define FLOAT double
#define LEAST least_vf64
#define MOST most_vf64
#define MIN min_vf64
#define MAX max_vf64
#else
#if defined(FOR_F32)
#define NAMED(name) OF_TYPE(name, f32)
#elif defined(FOR_BF16)
#define NAMED(name) OF_TYPE(name, bf16)
#elif defined(FOR_F16)
#define NAMED(name) OF_TYPE(name, f16)
#else
#error "no switch says what the instance is for"
#endif
#define VU vu32
#define VS vs32
#define VF vf32
#define UNSIGNED uint32_t
#define SIGNED int32_t
#define FLOAT float
#define LEAST least_vf32
#define MOST most_vf32
#define MIN min_vf32
#define MAX max_vf32
#endif

#include TEMPLATE

#undef GLUE_
#undef GLUE
#undef SQUARE
#undef OF_TYPE
#undef NAMED
#undef VU
#undef VS
#undef VF
#undef SCALAR
#undef VMIN
#undef VMAX
#undef UNSIGNED
#undef SIGNED
#undef FLOAT
#undef LEAST
#undef MOST
#undef MIN
#undef MAX
#undef LANE
#undef FOR_F64
#undef FOR_F32
#undef FOR_BF16
#undef FOR_F16
