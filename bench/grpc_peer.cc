/* grpc_peer: a server of grpc++ that does cured's float32 sum, and a client that asks either of them. scripts/bench-grpc alone
 * builds it. The server is what one writes with grpc++'s callbacks and nothing else; its sum adds doubles, sixteen at once.
 *
 * usage: grpc_peer serve ADDRESS           until it is killed; says "ready" first
 *        grpc_peer unary TARGET CALLS      sums of 1 KiB, 32 at once; every answer is checked
 *        grpc_peer bulk TARGET MIB         one ReduceStream in messages of 1 MiB; its answer is checked
 *        grpc_peer body FILE               what h2load is to send: the request of unary
 */
#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "cured.grpc.pb.h"

namespace pb = cured::v1;

constexpr int at_once = 32;
constexpr size_t small_bytes = 1024, piece_bytes = 1 << 20;

/* 0, 1, … 15, 0, 1, …: sums of them are exact in any order. */
static std::string array_of(size_t bytes) {
    std::vector<float> values(bytes / sizeof(float));
    for (size_t i = 0; i < values.size(); i++) values[i] = i % 16;
    return std::string(reinterpret_cast<const char *>(values.data()), bytes);
}

static double sum_of(size_t bytes) { return bytes / sizeof(float) * 7.5; }

/* ---- the server ---- */

/* Elements do not lie in two pieces here. */
static double add_up(const std::string &data) {
    double lanes[16] = {0}, sum = 0;
    const size_t count = data.size() / sizeof(float), whole = count / 16 * 16;
    float v[16];
    for (size_t i = 0; i < whole; i += 16) {
        memcpy(v, data.data() + i * sizeof(float), sizeof v);
        for (int k = 0; k < 16; k++) lanes[k] += v[k];
    }
    memcpy(v, data.data() + whole * sizeof(float), (count - whole) * sizeof(float));
    for (size_t k = 0; k < count - whole; k++) sum += v[k];
    for (double lane : lanes) sum += lane;
    return sum;
}

static void answer_with(double sum, size_t bytes, pb::ReduceResponse *answer) {
    pb::OpResult *result = answer->add_results();
    result->set_op(pb::OP_SUM);
    result->set_dtype(pb::DTYPE_F64);
    result->set_value(&sum, sizeof sum);
    answer->set_count(bytes / sizeof(float));
}

class Stream : public grpc::ServerBidiReactor<pb::ReduceChunk, pb::ReduceAnswer> {
   public:
    Stream() { StartRead(&chunk_); }
    void OnReadDone(bool ok) override {
        if (ok) {
            sum_ += add_up(chunk_.data());
            bytes_ += chunk_.data().size();
            StartRead(&chunk_);
        } else {
            answer_with(sum_, bytes_, answer_.mutable_end());
            StartWriteAndFinish(&answer_, grpc::WriteOptions(), grpc::Status::OK);
        }
    }
    void OnDone() override { delete this; }

   private:
    pb::ReduceChunk chunk_;
    pb::ReduceAnswer answer_;
    double sum_ = 0;
    size_t bytes_ = 0;
};

class Peer : public pb::Cured::CallbackService {
    grpc::ServerUnaryReactor *Reduce(grpc::CallbackServerContext *context, const pb::ReduceRequest *request,
                                     pb::ReduceResponse *answer) override {
        answer_with(add_up(request->data()), request->data().size(), answer);
        grpc::ServerUnaryReactor *reactor = context->DefaultReactor();
        reactor->Finish(grpc::Status::OK);
        return reactor;
    }
    grpc::ServerBidiReactor<pb::ReduceChunk, pb::ReduceAnswer> *ReduceStream(grpc::CallbackServerContext *) override {
        return new Stream;
    }
};

static void serve(const char *address) {
    Peer peer;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&peer);
    std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    if (!server) throw std::runtime_error("cannot listen");
    puts("ready");
    fflush(stdout);
    server->Wait();
}

/* ---- the client ---- */

static pb::ReduceRequest sum_request() {
    pb::ReduceRequest request;
    request.set_dtype(pb::DTYPE_F32);
    request.add_ops(pb::OP_SUM);
    return request;
}

static void check(const grpc::Status &status, const pb::ReduceResponse &answer, size_t bytes) {
    double sum = 0;
    if (!status.ok()) throw std::runtime_error(status.error_message());
    if (answer.results_size() == 1 && answer.results(0).value().size() == sizeof sum)
        memcpy(&sum, answer.results(0).value().data(), sizeof sum);
    if (sum != sum_of(bytes) || answer.count() != bytes / sizeof(float)) throw std::runtime_error("a wrong answer");
}

/* Every answer asks anew until all calls are begun. */
class Unary {
   public:
    Unary(pb::Cured::Stub *stub, long calls) : stub_(stub), left_(calls), request_(sum_request()) {
        request_.set_data(array_of(small_bytes));
    }
    void run() {
        for (int i = 0; i < at_once; i++) begin();
        std::unique_lock<std::mutex> lock(mutex_);
        idle_.wait(lock, [this] { return running_ == 0; });
    }

   private:
    struct Call {
        grpc::ClientContext context;
        pb::ReduceResponse answer;
    };
    void begin() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (left_ == 0) return;
            left_--, running_++;
        }
        Call *call = new Call;
        stub_->async()->Reduce(&call->context, &request_, &call->answer, [this, call](grpc::Status status) {
            try {
                check(status, call->answer, small_bytes);
            } catch (const std::exception &error) { /* gRPC would swallow it, and run() would wait for ever */
                fprintf(stderr, "grpc_peer: %s\n", error.what());
                _Exit(1);
            }
            delete call;
            begin();
            std::lock_guard<std::mutex> lock(mutex_);
            if (--running_ == 0) idle_.notify_all();
        });
    }
    pb::Cured::Stub *stub_;
    std::mutex mutex_;
    std::condition_variable idle_;
    long left_, running_ = 0;
    pb::ReduceRequest request_;
};

static void bulk(pb::Cured::Stub *stub, long mib) {
    grpc::ClientContext context;
    auto call = stub->ReduceStream(&context);
    pb::ReduceChunk head, chunk;
    *head.mutable_head() = sum_request();
    chunk.set_data(array_of(piece_bytes));
    bool open = call->Write(head);
    for (long i = 0; i < mib && open; i++) open = call->Write(chunk);
    call->WritesDone();
    pb::ReduceAnswer answer, last;
    while (call->Read(&answer)) last = answer;
    check(call->Finish(), last.end(), mib * piece_bytes);
}

/* gRPC's message on the wire: a byte of flags and four of length before it. */
static void body(const char *path) {
    pb::ReduceRequest request = sum_request();
    request.set_data(array_of(small_bytes));
    const std::string message = request.SerializeAsString();
    const unsigned n = message.size();
    const char head[5] = {0, char(n >> 24), char(n >> 16), char(n >> 8), char(n)};
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(head, 1, 5, f) != 5 || fwrite(message.data(), 1, n, f) != n || fclose(f) != 0)
        throw std::runtime_error("cannot write the file");
}

int main(int argc, char **argv) {
    try {
        const std::string what = argc > 2 ? argv[1] : "";
        auto stub =
            pb::Cured::NewStub(grpc::CreateChannel(argc > 2 ? argv[2] : "", grpc::InsecureChannelCredentials()));
        if (what == "serve")
            serve(argv[2]);
        else if (what == "body")
            body(argv[2]);
        else if (what == "unary" && argc == 4)
            Unary(stub.get(), atol(argv[3])).run();
        else if (what == "bulk" && argc == 4)
            bulk(stub.get(), atol(argv[3]));
        else
            throw std::runtime_error("usage: grpc_peer serve|unary|bulk|body ...");
        return 0;
    } catch (const std::exception &error) {
        fprintf(stderr, "grpc_peer: %s\n", error.what());
        return 1;
    }
}
