// Exact sums of many values in two levels of one window that all of them share: kernels/cpu/windows/two_levels.py explains them,
// and gives the same sums. They stay in the GPU's memory, where sums of several arrays are added to each other and rounded.
//
// The sums of `values` values are words of 64 bits: all upper ones, all lower ones, two words that tell of all values together
// (`Told`), and a byte for each value that is not 0 where one of its elements is not −0. All are 0 at first.
#include "exact_nearest.cuh"
#include "exact_tiles.cuh"

constexpr int LEVEL = 51, FLIGHT = 8, CARRIED = 1 << 11;
constexpr int64 LOW = (int64(1) << LEVEL) - 1, MOST_OF_THREAD = int64(1) << 57;
constexpr uint64 LIMIT = uint64(1) << 61;

// Whether the window does not hold an element or an upper sum may reach LIMIT, and what no upper sum exceeds in magnitude. The
// sums are of use where the first word is 0: until then they wrap, and the host need not look before it merges them.
enum Told { NOT_HELD, MOST };

struct Sums {
    int64 *upper, *lower;
    uint64* told;
    uint8* others;
    __device__ Sums(int64* words, uint64 values)
        : upper(words), lower(words + values), told(reinterpret_cast<uint64*>(words + 2 * values)),
          others(reinterpret_cast<uint8*>(words + 2 * values + 2)) {}
};

// The sum of the elements that one thread takes.
struct ThreadSum {
    double first, second;
    int64 upper = 0, lower = 0;
    uint32 outside = 0;
    uint64 rest = 0;
    bool other = false, large = false;

    __device__ ThreadSum(double first, double second) : first(first), second(second) {}

    __device__ void add(double d) {
        const double t = d + first, r = d - (t - first), u = r + second;
        upper += __double_as_longlong(t) - __double_as_longlong(first);
        lower += __double_as_longlong(u) - __double_as_longlong(second);
        outside |= uint32(__double2hiint(t) ^ __double2hiint(first));
        rest |= uint64(__double_as_longlong(r - (u - second)));
    }
    // To be called after at most CARRIED elements.
    __device__ void carry() {
        upper += lower >> LEVEL;
        lower &= LOW;
        large = large || upper >= MOST_OF_THREAD || upper <= -MOST_OF_THREAD;
    }
    __device__ bool held() const { return outside >> 20 == 0 && rest << 1 == 0 && !large; }
};

// Adds `count` elements that are `stride` apart.
template <class T>
__device__ void add_elements(ThreadSum& sum, const T* data, uint64 count, uint64 stride, bool magnitudes) {
    uint64 since = 0;
    for (uint64 at = 0; at < count; at += FLIGHT) {
        T some[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) some[k] = at + k < count ? data[(at + k) * stride] : T(-0.0);
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) {
            sum.other = sum.other || bits_of(some[k]) != SIGN<T>;
            sum.add(magnitudes ? fabs(double(some[k])) : double(some[k]));
        }
        since += FLIGHT;
        if (since == CARRIED) {
            sum.carry();
            since = 0;
        }
    }
    sum.carry();
    sum.other = sum.other || (magnitudes && count);
}

// `parts` such sums make one.
__device__ inline void tell(uint64* told, int64 upper, bool held, uint64 parts) {
    uint64 magnitude = upper < 0 ? uint64(-upper) : uint64(upper);
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        const uint64 other = __shfl_xor_sync(~0u, magnitude, distance);
        if (other > magnitude) magnitude = other;
    }
    const bool all = __all_sync(~0u, held);
    if (threadIdx.x % 32) return;
    const bool small = (magnitude + 1) < LIMIT / parts;
    if (!all || !small) told[NOT_HELD] = 1;
    const uint64 most = (magnitude + 1) * parts;
    if (small && most > told[MOST]) atomicMax(told + MOST, most);
}

__device__ inline void put(const Sums& sums, uint64 value, int64 upper, int64 lower, bool other, bool alone) {
    if (other) sums.others[value] = 1;
    if (alone) {
        sums.upper[value] = upper;
        sums.lower[value] = lower;
        return;
    }
    atomicAdd(reinterpret_cast<uint64*>(sums.upper + value), uint64(upper));
    atomicAdd(reinterpret_cast<uint64*>(sums.lower + value), uint64(lower));
}

// Value c is column c of `rows` rows that are `stride` apart; `parts` blocks share a tile of columns.
template <class T>
__global__ void __launch_bounds__(256, 4) level_columns(const T* data, uint64 rows, uint64 stride, uint64 width, uint64 parts,
                                                     double first, double second, uint32 magnitudes, int64* words) {
    const uint64 column = blockIdx.x / parts * 256 + threadIdx.x, part = blockIdx.x % parts;
    const uint64 from = rows * part / parts, to = rows * (part + 1) / parts;
    ThreadSum sum(first, second);
    if (column < width) add_elements(sum, data + from * stride + column, to - from, stride, magnitudes != 0);
    const Sums sums(words, width);
    tell(sums.told, sum.upper, sum.held(), parts);
    if (column < width) put(sums, column, sum.upper, sum.lower, sum.other, parts == 1);
}

// Value v is the row of `length` elements that begins at v · stride; `parts` warps share a row.
template <class T>
__global__ void __launch_bounds__(256, 4) level_rows(const T* data, uint64 values, uint64 stride, uint64 length, uint64 parts,
                                                  double first, double second, uint32 magnitudes, int64* words) {
    const uint64 warp = (uint64(blockIdx.x) * 256 + threadIdx.x) / 32, value = warp / parts, part = warp % parts;
    if (value >= values) return;
    const uint64 lane = threadIdx.x % 32, from = length * part / parts, to = length * (part + 1) / parts;
    ThreadSum sum(first, second);
    if (from + lane < to)
        add_elements(sum, data + value * stride + from + lane, (to - from - lane + 31) / 32, 32, magnitudes != 0);
    bool held = sum.held();
    int64 upper = sum.upper, lower = sum.lower;
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        upper += __shfl_xor_sync(~0u, upper, distance);
        lower += __shfl_xor_sync(~0u, lower, distance);
    }
    upper += lower >> LEVEL;
    lower &= LOW;
    const Sums sums(words, values);
    tell(sums.told, upper, held, parts);
    const bool other = __any_sync(~0u, sum.other);
    if (lane == 0) put(sums, value, upper, lower, other, parts == 1);
}

constexpr int MERGED = 8;

// The sums of up to eight arrays, of which those that are null are left out. Byte k of `shifts`, at most 60, says how many places
// the unit of array k lies above that of their sum.
__global__ void __launch_bounds__(256) level_merge(uint64 values, int64* out, uint64 shifts, const int64* a, const int64* b,
                                                   const int64* c, const int64* d, const int64* e, const int64* f,
                                                   const int64* g, const int64* h) {
    const uint64 value = uint64(blockIdx.x) * 256 + threadIdx.x;
    if (value >= values) return;
    const int64* const all[MERGED] = {a, b, c, d, e, f, g, h};
    uint128 total = 0;
    uint64 most = 0, not_held = 0;
    bool other = false;
#pragma unroll
    for (int k = 0; k < MERGED; ++k) {
        if (all[k] == nullptr) continue;
        const Sums part(const_cast<int64*>(all[k]), values);
        const int shift = int(shifts >> (8 * k) & 255);
        if (value == 0) {
            const uint64 one = part.told[MOST] + 1;  // a carry
            most += one < LIMIT >> shift ? one << shift : LIMIT;
            most = most < LIMIT ? most : LIMIT;  // so that eight of them do not wrap
            not_held |= part.told[NOT_HELD];
        }
        const int128 sum = int128(part.upper[value]) * (int128(1) << LEVEL) + part.lower[value];
        total += uint128(sum) << shift;
        other = other || part.others[value];
    }
    const Sums sums(out, values);
    put(sums, value, int64(int128(total) >> LEVEL), int64(uint64(total) & uint64(LOW)), other, true);
    if (value == 0) {
        sums.told[NOT_HELD] = not_held | (most >= LIMIT);
        sums.told[MOST] = most < LIMIT ? most : LIMIT - 1;
    }
}

// out[v] = sum v · 2^unit ÷ count, rounded once.
template <class T>
__global__ void __launch_bounds__(256) level_round(const int64* words, uint64 values, int64 unit, uint64 count, T* out) {
    using F = Format<T>;
    const uint64 value = uint64(blockIdx.x) * 256 + threadIdx.x;
    if (value >= values) return;
    const Sums sums(const_cast<int64*>(words), values);
    const int128 total = int128(sums.upper[value]) * (int128(1) << LEVEL) + sums.lower[value];
    if (total == 0) {
        out[value] = T(sums.others[value] ? 0.0 : -0.0);
        return;
    }
    uint128 magnitude = total < 0 ? uint128(-total) : uint128(total);
    int exponent = int(unit);
    bool sticky = false;
    if (count > 1) {
        const uint64 high = uint64(magnitude >> 64);
        const int places = high ? __clzll(int64(high)) : 64 + __clzll(int64(uint64(magnitude)));
        magnitude <<= places;
        exponent -= places;
        sticky = magnitude % count != 0;
        magnitude /= count;
    }
    const double rounded = nearest(magnitude, sticky, exponent, F::PRECISION, F::LOWEST, F::HIGHEST);
    round_to(out[value], total < 0 ? -rounded : rounded);
}
