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

#include "cured.grpc.pb.h"

namespace cured_v1 = cured::v1;

constexpr size_t piece_bytes = 1 << 20;  // of a message; clients take and send 4 MiB at most unless told otherwise

static void check(const grpc::Status &status) {
    if (!status.ok()) throw std::runtime_error(status.error_message());
}

// Values are little-endian, as in the memory of most machines.
template <typename T>
static T value(const cured_v1::OpResult &result) {
    T v;
    if (result.status() != 0) throw std::runtime_error(result.message());
    if (result.value().size() != sizeof v) throw std::runtime_error("a value of another length");
    memcpy(&v, result.value().data(), sizeof v);
    return v;
}

// The shortest digits that read back, with a point.
static std::string text(double v) {
    char digits[32];
    std::string s(digits, std::to_chars(digits, digits + sizeof digits, v).ptr);
    return s.find_first_not_of("-0123456789") == std::string::npos ? s + ".0" : s;
}

static void print(const char *what, const cured_v1::ReduceResponse &answer) {
    if (answer.results_size() != 2) throw std::runtime_error("an answer without two results");
    std::cout << what << ": sum " << text(value<double>(answer.results(0))) << " max "
              << text(value<float>(answer.results(1))) << std::endl;
}

static cured_v1::ReduceRequest wanted() {
    cured_v1::ReduceRequest request;
    request.set_dtype(cured_v1::DTYPE_F32);
    request.add_ops(cured_v1::OP_SUM);
    request.add_ops(cured_v1::OP_MAX);
    return request;
}

// A small array fits into its request.
static void reduce_small(cured_v1::Cured::Stub &stub) {
    const float array[] = {1, 2, 3};
    cured_v1::ReduceRequest request = wanted();
    request.set_data(array, sizeof array);
    cured_v1::ReduceResponse answer;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    check(stub.Reduce(&context, request, &answer));
    print("small", answer);
}

// A large one is a stream: one head, then the array in pieces. Write waits while the daemon is behind. The last answer has
// the results. Along an axis answers come while the array is sent: a thread of its own must read them.
static void reduce_file(cured_v1::Cured::Stub &stub, const char *path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) throw std::runtime_error(std::string(path) + ": cannot be opened");
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
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
        reduce_small(*stub);
        reduce_file(*stub, argv[2]);
        return 0;
    } catch (const std::exception &error) {
        std::cerr << error.what() << std::endl;
        return 1;
    }
}
