// The exact sums by key behind a C function: a launch by the name of its kernel, its blocks one after another, each of one warp.
#include "cuda.h"
#include "fibers.h"
#include <cstdint>
#include <vector>
// then the device code
#include "keyed_extremes.cuh"
#include "keyed_finish.cuh"
#include "keyed_partition.cuh"
#include "keyed_runs.cuh"
#include "keyed_sample.cuh"
#include "keyed_squares.cuh"
#include "keyed_stream_ends.cuh"
#include "keyed_stream_serial.cuh"

template <class T>
T& at(void* const* args, int place) { return *static_cast<T*>(args[place]); }

template <class Body>
void blocks(uint64 grid, const Body& body) {
    gridDim.x = unsigned(grid);
    for (blockIdx.x = 0; blockIdx.x < grid; ++blockIdx.x) Warp::run(body);
    blockIdx.x = 0;
    gridDim.x = 1;
}

struct Memory {  // of a block, with a guard behind it
    std::vector<uint64> words;
    explicit Memory(uint64 shared) : words((shared + 7) / 8 + 1, 0x5EED5EED5EED5EED) {}
    ~Memory() {
        if (words.back() != 0x5EED5EED5EED5EED) abort();
    }
    uint32* at() { return reinterpret_cast<uint32*>(words.data()); }
};

KeyedState state_of(void* const* a, int k) {
    return {at<uint64*>(a, k), at<uint32*>(a, k + 1), at<uint32*>(a, k + 2), at<uint32*>(a, k + 3), at<uint32*>(a, k + 4),
            at<uint32*>(a, k + 5), at<double*>(a, k + 6), at<uint32>(a, k + 7), at<uint64>(a, k + 8)};
}

template <class K, class V>
void run_sample(uint64 grid, uint64, void* const* a) {
    blocks(grid * 8, [&] { sample_rows<K, V>(at<K*>(a, 0), at<V*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), at<uint32>(a, 4), at<uint64*>(a, 5)); });
}

template <class K, class V, int LEVELS>
void run_few(uint64 grid, uint64 shared, void* const* a) {
    Memory memory(shared);
    const KeyedState state = state_of(a, 8);
    blocks(grid, [&] {
        add_few_groups<K, V, LEVELS, 32, 2>(at<K*>(a, 0), at<V*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), Codes<K>{at<int64>(a, 4), state.range},
                                            at<uint32>(a, 5), at<int32>(a, 6), at<bool>(a, 7), state, memory.at());
    });
}

template <class K, class V, int LEVELS>
void run_runs(uint64 grid, uint64, void* const* a) {
    const KeyedState state = state_of(a, 7);
    blocks(grid, [&] {
        add_runs<K, V, LEVELS, 2>(at<K*>(a, 0), at<V*>(a, 1), at<uint64>(a, 2), at<uint64>(a, 3), Codes<K>{at<int64>(a, 4), state.range},
                                  at<int32>(a, 5), at<bool>(a, 6), state);
    });
}

template <class K, class V>
SortedGroups<K, V> sorted_of(void* const* a, int k) {
    return {at<K*>(a, k), at<V*>(a, k + 1), at<uint32*>(a, k + 2), {at<uint64*>(a, k + 3), at<uint64*>(a, k + 4)}, at<uint64*>(a, k + 5),
            at<uint64*>(a, k + 6), at<uint64*>(a, k + 7), at<uint32*>(a, k + 8), at<uint32>(a, k + 9), at<uint32>(a, k + 10)};
}

template <class K, class V, int PLANES, bool MEAN, int READS>
void run_stream(uint64 grid, uint64 shared, void* const* a) {
    Memory memory(shared);
    if (shared < sizeof(StreamTile<K, PLANES, READS, 32>)) abort();
    blocks(grid, [&] {
        add_stream<K, V, PLANES, READS, 32, MEAN>(at<K*>(a, 0), at<V*>(a, 1), at<uint64>(a, 2), at<K>(a, 3), at<int32>(a, 4), sorted_of<K, V>(a, 5),
                                              reinterpret_cast<char*>(memory.at()));
    });
}

template <class K, int READS>
void run_serial(uint64 grid, uint64 shared, void* const* a) {
    Memory memory(shared);
    if (shared < sizeof(SerialTile<READS, 32>) + SerialTile<READS, 32>::SIZE * (sizeof(K) + 4)) abort();
    blocks(grid, [&] {
        add_serial_stream<K, READS, 32>(at<K*>(a, 0), at<float32*>(a, 1), at<uint64>(a, 2), at<K>(a, 3), at<int32>(a, 4),
                                           sorted_of<K, float32>(a, 5), reinterpret_cast<char*>(memory.at()));
    });
}

template <int PLANES>
void run_joins(uint64 grid, uint64, void* const* a) {
    blocks(8 * grid, [&] { join_parts<PLANES>(at<uint64*>(a, 0), at<uint64*>(a, 1), at<uint32*>(a, 2), at<uint32>(a, 3)); });
}

template <class K, class V, int PLANES, bool MEAN>
void run_ends(uint64 grid, uint64, void* const* a) {
    blocks(4 * grid, [&] {
        finish_parts<K, V, PLANES, MEAN>(at<int32>(a, 0), at<uint32>(a, 1), at<uint32>(a, 2), at<uint64>(a, 3), sorted_of<K, V>(a, 4));
    });
}

template <class K, class V, bool MEAN>
void run_again(uint64 grid, uint64, void* const* a) {
    blocks(grid, [&] { read_again<K, V, MEAN>(at<V*>(a, 0), at<bool>(a, 1), at<uint64*>(a, 2), sorted_of<K, V>(a, 3)); });
}

template <class K>
void run_sizes(uint64 grid, uint64 shared, void* const* a) {
    Memory memory(shared);
    blocks(grid, [&] {
        count_buckets<K, 32>(at<K*>(a, 0), at<uint64>(a, 1), at<uint64>(a, 2), Codes<K>{at<int64>(a, 3), at<uint64>(a, 4)}, at<uint32>(a, 5),
                             at<uint32>(a, 6), at<uint32*>(a, 7), at<uint32*>(a, 8), memory.at());
    });
}

void run_starts(uint64 grid, uint64, void* const* a) {
    blocks(grid, [&] {
        start_buckets<32>(at<uint32*>(a, 0), at<uint32>(a, 1), at<uint32>(a, 2), at<uint32>(a, 3), at<uint32*>(a, 4), at<uint32*>(a, 5),
                          at<uint32*>(a, 6), at<uint32*>(a, 7));
    });
}

template <class K, class V>
void run_parts(uint64 grid, uint64 shared, void* const* a) {
    Memory memory(shared);
    const Tiles tiles{at<uint64>(a, 2), at<uint32*>(a, 5), at<uint32*>(a, 6), at<uint32>(a, 7), at<uint32>(a, 8), at<uint32>(a, 9)};
    blocks(grid, [&] {
        put_into_buckets<K, V, 32, 8>(at<K*>(a, 0), at<V*>(a, 1), tiles, Codes<K>{at<int64>(a, 3), at<uint64>(a, 4)}, at<uint32>(a, 10),
                                      at<uint32>(a, 11), at<uint32*>(a, 12), at<uint32*>(a, 13), at<V*>(a, 14),
                                      reinterpret_cast<char*>(memory.at()));
    });
}

template <class V, int LEVELS>
void run_sums(uint64 grid, uint64 shared, void* const* a) {
    Memory memory(shared);
    const KeyedState state = state_of(a, 8);
    blocks(grid, [&] {
        add_buckets<V, LEVELS, 32, 2>(at<uint32*>(a, 0), at<V*>(a, 1), at<uint32*>(a, 2), at<uint32>(a, 3), at<uint32>(a, 4), at<uint64>(a, 5),
                                      at<int32>(a, 6), at<bool>(a, 7), state, memory.at());
    });
}

template <class V, class Out, int LEVELS>
void run_values(uint64, uint64, void* const* a) {
    const KeyedState state = state_of(a, 4);
    blocks(2, [&] { finish_groups<V, Out, LEVELS>(state, at<int32>(a, 0), at<bool>(a, 1), at<uint8*>(a, 2), at<Out*>(a, 3)); });
}

template <class V, int LEVELS>
void run_integers(uint64, uint64, void* const* a) {
    const KeyedState state = state_of(a, 2);
    blocks(2, [&] { finish_integers<V, LEVELS>(state, at<uint64*>(a, 0), at<int64*>(a, 1)); });
}

template <class K, class V, class Order>
void run_least(uint64, uint64, void* const* a) {
    blocks(2, [&] {
        find_least<K, V, Order>(at<K*>(a, 0), at<V*>(a, 1), at<uint64>(a, 2), Codes<K>{at<int64>(a, 3), at<uint64>(a, 4)}, at<int64>(a, 5),
                                at<int64>(a, 6), at<bool>(a, 7), at<bool>(a, 8), at<Order*>(a, 9));
    });
}

template <class K, class V, class Order>
void run_first(uint64, uint64, void* const* a) {
    blocks(2, [&] {
        find_first<K, V, Order>(at<K*>(a, 0), at<V*>(a, 1), at<uint64>(a, 2), Codes<K>{at<int64>(a, 3), at<uint64>(a, 4)}, at<int64>(a, 5),
                                at<int64>(a, 6), at<bool>(a, 7), at<bool>(a, 8), at<Order*>(a, 9), at<uint64*>(a, 10));
    });
}

void run_squares(uint64, uint64, void* const* a) {
    blocks(2, [&] { split_squares(at<double*>(a, 0), at<uint64>(a, 1), at<double*>(a, 2), at<uint32*>(a, 3)); });
}

void run_wide_squares(uint64, uint64, void* const* a) {
    blocks(2, [&] { widen_squares(at<float*>(a, 0), at<uint64>(a, 1), at<double*>(a, 2)); });
}

template <class K, class V>
void run_zeros(uint64, uint64, void* const* a) {
    blocks(2, [&] {
        note_other_than_zero<K, V>(at<K*>(a, 0), at<V*>(a, 1), at<uint64>(a, 2), Codes<K>{at<int64>(a, 3), at<uint64>(a, 4)}, at<uint8*>(a, 5));
    });
}

void run_add_listed(uint64 grid, uint64, void* const* a) {
    blocks(2 * grid, [&] { add_listed_elements(at<double*>(a, 0), at<uint32*>(a, 1), at<uint32>(a, 2), at<uint64*>(a, 3)); });
}

template <class V, int LEVELS>
void run_listed(uint64 grid, uint64, void* const* a) {
    const KeyedState state = state_of(a, 6);
    blocks(2 * grid, [&] {
        finish_listed_groups<V, LEVELS>(state, at<int32>(a, 0), at<bool>(a, 1), at<uint32*>(a, 2), at<uint32>(a, 3), at<uint64*>(a, 4),
                                        at<V*>(a, 5));
    });
}

struct Name {
    const char* text;
    bool operator==(const char* other) const { return !strcmp(text, other); }
};

#define RUN(NAME, ...) \
    if (name == NAME) return __VA_ARGS__(grid, shared, args), true
#define PAIR(K, V, L) \
    RUN("few_groups<" #K ", " #V ", " #L ", 2, 32, 1>", run_few<K, V, L>); \
    RUN("run_sums<" #K ", " #V ", " #L ", 2, 32, 1>", run_runs<K, V, L>)
#define SAMPLE(V) \
    RUN("sample<int32, " #V ">", run_sample<int32, V>); RUN("sample<uint32, " #V ">", run_sample<uint32, V>)
#define ORDERS(K, V, ORDER) \
    RUN("least_orders<" #K ", " #V ", " #ORDER ">", run_least<K, V, ORDER>); \
    RUN("first_rows<" #K ", " #V ", " #ORDER ">", run_first<K, V, ORDER>)
#define KEYS(K) \
    RUN("bucket_sizes<" #K ", 32>", run_sizes<K>); \
    RUN("into_buckets<" #K ", uint32, 8, 32, 1>", run_parts<K, uint32>); \
    ORDERS(K, float32, int32); \
    PAIR(K, float32, 1); PAIR(K, float32, 2); PAIR(K, float32, 3); \
    RUN("other_than_zero<" #K ", float32>", run_zeros<K, float32>)
#define STREAM(K, V, P, MEAN, R) \
    RUN("stream_sums<" #K ", " #V ", " #P ", " #MEAN ", " #R ", 32, 1>", run_stream<K, V, P, MEAN, R>); \
    RUN("stream_ends<" #K ", " #V ", " #P ", " #MEAN ">", run_ends<K, V, P, MEAN>)
#define SERIAL(K, R) RUN("serial_sums<" #K ", float32, " #R ", 32, 1>", run_serial<K, R>)
#define STREAMS(K, V, P, R) STREAM(K, V, P, false, R); STREAM(K, V, P, true, 1)
#define AGAIN(K, V) \
    RUN("stream_again<" #K ", " #V ", false>", run_again<K, V, false>); RUN("stream_again<" #K ", " #V ", true>", run_again<K, V, true>)
#define LEVEL(V, L) \
    RUN("bucket_sums<" #V ", " #L ", 2, 32, 1>", run_sums<V, L>); \
    RUN("group_values<" #V ", " #V ", " #L ">", run_values<V, V, L>); \
    RUN("listed_values<" #V ", " #L ">", run_listed<V, L>)
#define INTEGERS(V, L, ORDER) \
    PAIR(int32, V, L); \
    ORDERS(int32, V, ORDER); \
    RUN("bucket_sums<" #V ", " #L ", 2, 32, 1>", run_sums<V, L>); \
    RUN("group_integers<" #V ", " #L ">", run_integers<V, L>); \
    RUN("group_values<" #V ", float64, " #L ">", run_values<V, float64, L>)

extern "C" bool keyed_by_name(const char* text, uint64 grid, uint64 shared, void* const* args) {
    const Name name{text};
    RUN("bucket_starts<1024>", run_starts);
    RUN("listed_sums<64>", run_add_listed);
    SAMPLE(float32);
    SAMPLE(float64);
    SAMPLE(int32);
    RUN("sample<int64, float32>", run_sample<int64, float32>);
    RUN("sample<uint64, float32>", run_sample<uint64, float32>);
    KEYS(int32);
    KEYS(int64);
    PAIR(int32, float64, 2);
    PAIR(int32, float64, 3);
    RUN("into_buckets<int32, uint64, 8, 32, 1>", run_parts<int32, uint64>);
    ORDERS(int32, float64, int64);
    RUN("square_parts", run_squares);
    RUN("wide_squares", run_wide_squares);
    RUN("other_than_zero<int32, float64>", run_zeros<int32, float64>);
    STREAMS(uint32, float32, 1, 2); STREAMS(uint32, float32, 2, 1); STREAMS(uint32, float64, 2, 1);
    SERIAL(uint32, 2); SERIAL(uint64, 2); SERIAL(uint64, 4);
    STREAMS(uint64, float32, 1, 1); STREAMS(uint64, float32, 2, 1);
    AGAIN(uint32, float32); AGAIN(uint32, float64); AGAIN(uint64, float32);
    RUN("stream_joins<1>", run_joins<1>);
    RUN("stream_joins<2>", run_joins<2>);
    LEVEL(float32, 1);
    LEVEL(float32, 2);
    LEVEL(float32, 3);
    LEVEL(float64, 2);
    LEVEL(float64, 3);
    INTEGERS(int32, 1, int32);
    INTEGERS(int64, 2, int64);
    INTEGERS(uint64, 2, int64);
    return false;
}
