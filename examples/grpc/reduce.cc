// Sum and maximum of a file of float32 over gRPC, with grpc++ and stubs that protoc made (docs/GRPC.md).
//
// usage: reduce TARGET FILE [CA CERTIFICATE KEY]      TARGET: unix:/run/cured/cured.sock, or HOST:PORT
// With three PEM files it speaks TLS: the CA of the daemon's certificate, and a certificate of its own.
#include <grpcpp/grpcpp.h>

#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "cured.grpc.pb.h"

namespace cured_v1 = cured::v1;

constexpr size_t piece_bytes = 1 << 20;  // of a message; clients take and send 4 MiB at most unless told otherwise

static void check(const grpc::Status &status) {
    if (!status.ok()) throw std::runtime_error(status.error_message());
}

// Values are little-endian, as in the memory of most machines. Along an axis there are several, in their order.
template <typename T>
static std::vector<T> values(const cured_v1::OpResult &result) {
    if (result.status() != 0) throw std::runtime_error(result.message());
    std::vector<T> all(result.value().size() / sizeof(T));
    memcpy(all.data(), result.value().data(), all.size() * sizeof(T));
    return all;
}

// The shortest digits that read back, with a point.
static std::string text(double v) {
    char digits[32];
    std::string s(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
    return s.find_first_not_of("-0123456789") == std::string::npos ? s + ".0" : s;
}

static void print(const char *what, const cured_v1::ReduceResponse &answer) {
    if (answer.results_size() != 2) throw std::runtime_error("an answer without two results");
    std::cout << what << ": sum";
    for (double sum : values<double>(answer.results(0))) std::cout << " " << text(sum);
    std::cout << " max";
    for (float max : values<float>(answer.results(1))) std::cout << " " << text(max);
    std::cout << std::endl;
}

static cured_v1::ReduceRequest wanted() {
    cured_v1::ReduceRequest request;
    request.set_dtype(cured_v1::DTYPE_F32);
    request.add_ops(cured_v1::OP_SUM);
    request.add_ops(cured_v1::OP_MAX);
    return request;
}

// A daemon that is just starting is waited for, as long as the call may take.
static void limit(grpc::ClientContext &context, int seconds) {
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
}

// A small array fits into its request. Along an axis each result has all its answers, here those of the rows.
static void reduce_small(cured_v1::Cured::Stub &stub, const char *what, uint64_t rows) {
    const float array[] = {1, 2, 3, 4, 5, 6};
    cured_v1::ReduceRequest request = wanted();
    request.set_data(array, 3 * rows * sizeof(float));
    if (rows > 1) {
        request.mutable_axis()->set_outer(rows);
        request.mutable_axis()->set_n(3);
        request.mutable_axis()->set_inner(1);
    }
    cured_v1::ReduceResponse answer;
    grpc::ClientContext context;
    limit(context, 10);
    check(stub.Reduce(&context, request, &answer));
    print(what, answer);
}

// A large one is a stream: one head, then the array in pieces. Write waits while the daemon is behind. The last answer has
// the results. Along an axis answers come while the array is sent: a thread of its own must read them.
static void reduce_file(cured_v1::Cured::Stub &stub, const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string(path) + ": cannot be opened");
    grpc::ClientContext context;
    limit(context, 60);
    auto call = stub.ReduceStream(&context);
    cured_v1::ReduceChunk chunk;
    *chunk.mutable_head() = wanted();
    std::string piece(piece_bytes, '\0');
    bool open = call->Write(chunk);
    while (open && (file.read(piece.data(), piece.size()) || file.gcount() > 0)) {
        chunk.set_data(piece.data(), file.gcount());
        open = call->Write(chunk);
    }
    call->WritesDone();
    cured_v1::ReduceAnswer answer, last;
    while (call->Read(&answer)) last = answer;
    check(call->Finish());
    print("file", last.end());
}

static std::string content(const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string(path) + ": cannot be opened");
    return std::string(std::istreambuf_iterator<char>(file), {});
}

int main(int argc, char **argv) {
    try {
        if (argc != 3 && argc != 6) throw std::runtime_error("usage: reduce TARGET FILE [CA CERTIFICATE KEY]");
        auto credentials = grpc::InsecureChannelCredentials();
        if (argc == 6) credentials = grpc::SslCredentials({content(argv[3]), content(argv[5]), content(argv[4])});
        auto stub = cured_v1::Cured::NewStub(grpc::CreateChannel(argv[1], credentials));
        reduce_small(*stub, "small", 1);
        reduce_small(*stub, "rows", 2);
        reduce_file(*stub, argv[2]);
        return 0;
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
