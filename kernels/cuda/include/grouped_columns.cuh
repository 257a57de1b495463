// Neighbouring elements of neighbouring values: the columns of an array in C order.
//
// A thread reads vectors that lie a period apart. A period is a number of whole rows, so that each slot of the thread's vectors always
// has the same column. In a narrow array many threads of a block share a column, and put together what they have of it. Where a block
// has all rows, it rounds its columns. Otherwise it leaves parts in memory, which another launch puts together and rounds. Few long
// rows are cut into such parts, too.
#pragma once
#include "grouped_rows.cuh"
#include "grouped_spans.cuh"

// A thread reads this at a time: 16 bytes, or one element.
template <class T, bool VECTORS>
struct Slots {
    static constexpr int COUNT = VECTORS ? Vector<T>::size : 1;

    static __device__ Vector<T> load(const T* at) {
        if constexpr (VECTORS) return Vector<T>::load(at);
        Vector<T> read = zeros<T>(true);
        const Bits<T> bits = bits_of(*at);
        memcpy(read.words, &bits, sizeof(T));
        return read;
    }
};

struct ColumnsOf {
    uint64 total;    // elements
    uint32 columns;
    uint64 period;   // in vectors
    uint32 tiles;    // blocks for one period
    uint64 periods;  // that a block has of each of its vectors
    uint32 once;     // threads whose places are so many apart have the same columns; the period where no two of a block have
    uint64 rows;     // of the whole array
};

// The elements of one slot in the tile of a thread.
template <class T, int FLIGHT>
struct Column {
    static constexpr int SIZE = FLIGHT;
    T elements[FLIGHT];
    __device__ T operator[](int at) const { return elements[at]; }
    __device__ void make_zero(int at, bool negative) { set_bits(elements[at], negative ? uint64(SIGN<T>) : 0); }
};

template <class T, int FLIGHT>
__device__ Extent<T> extent_of(const Column<T, FLIGHT>& column) {
    Extent<T> found;
#pragma unroll
    for (int at = 0; at < FLIGHT; ++at) {
        const uint32 key = key_of(widen(column[at]));
        found.include({key, key - 1});
    }
    return found;
}

// The vectors of an array whose number of elements is no multiple of theirs end with one that is read by elements.
template <class T, bool VECTORS>
struct LastVector {
    static constexpr int COUNT = Slots<T, VECTORS>::COUNT;
    uint64 number;
    Vector<T> read;

    __device__ LastVector(const T* data, uint64 total, bool negative = true) : number(total / COUNT), read(zeros<T>(negative)) {
        if (total % COUNT == 0) return;
        T elements[COUNT];
#pragma unroll
        for (int s = 0; s < COUNT; ++s) {
            set_bits(elements[s], negative ? SIGN<T> : 0);
            if (number * COUNT + s < total) elements[s] = data[number * COUNT + s];
        }
        memcpy(read.words, elements, 16);
    }
};

// What a thread reads at a time: FLIGHT vectors, a period of so many apart, from number `at` on. Behind the end there are −0, or +0.
template <class T, bool VECTORS, int FLIGHT>
struct ColumnTile {
    Vector<T> vectors[FLIGHT];

    ColumnTile() = default;
    __device__ ColumnTile(const T* data, uint64 at, uint64 period, uint64 end, const LastVector<T, VECTORS>& last,
                          bool negative = true) {
        using Of = Slots<T, VECTORS>;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) {
            const uint64 number = at + k * period;
            vectors[k] = zeros<T>(negative);
            if (number < end && number < last.number) vectors[k] = Of::load(data + number * Of::COUNT);
            else if (VECTORS && number < end) vectors[k] = last.read;
        }
    }
    // `number` must be known at compile time after unrolling.
    __device__ Column<T, FLIGHT> slot(int number) const {
        Column<T, FLIGHT> column;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k) column.elements[k] = vectors[k][number];
        return column;
    }
};

// The same of one array or of two, and what these end with.
template <class T, int TERMS, bool VECTORS, int FLIGHT>
struct ColumnsFrom {
    using Read = ColumnTile<T, VECTORS, FLIGHT>;
    const T* data;
    uint64 period;
    LastVector<T, VECTORS> last;

    __device__ ColumnsFrom(const T* data, uint64 total, uint64 period, bool negative = true)
        : data(data), period(period), last(data, total, negative) {}
    __device__ Read read(uint64 at, uint64 end, bool negative = true) const { return {data, at, period, end, last, negative}; }
    static __device__ Column<T, FLIGHT> slot(const Read& read, int number) { return read.slot(number); }
};
template <class T, bool VECTORS, int FLIGHT>
struct ColumnsFrom<T, PRODUCTS, VECTORS, FLIGHT> {
    struct Read {
        ColumnTile<T, VECTORS, FLIGHT> x, y;
    };
    ColumnsFrom<T, VALUES, VECTORS, FLIGHT> x, y;

    __device__ ColumnsFrom(const Pairs<T>& data, uint64 total, uint64 period)
        : x(data.x, total, period), y(data.y, total, period, false) {}
    __device__ Read read(uint64 at, uint64 end) const { return {x.read(at, end), y.read(at, end, false)}; }
    static __device__ Both<Column<T, FLIGHT>> slot(const Read& read, int number) { return {read.x.slot(number), read.y.slot(number)}; }
};

// Places for `size` parts, of which number r has the column r modulo the number of columns.
template <class T, int TERMS>
struct PlacesOfParts {
    static constexpr int DOUBLES = (VALUED<TERMS> ? 2 : 0) + (SQUARED<TERMS> ? 2 : 0) + (WITH_ERRORS<T, TERMS> ? 2 : 0);
    static constexpr int BYTES = DOUBLES * 8 + 12;  // of a part
    double* doubles;
    uint32* words;
    uint64 size;

    __device__ void put(uint64 at, Parts<T, TERMS>& parts) const {
        double* to = doubles + at;
        parts.each([&](const Halves& sum) {
            to[0] = sum.upper;
            to[size] = sum.lower;
            to += 2 * size;
        });
        words[at] = parts.extent.largest;
        words[at + size] = parts.extent.smallest;
        words[at + 2 * size] = parts.met;
    }
    __device__ Parts<T, TERMS> get(uint64 at) const {
        const double* from = doubles + at;
        Parts<T, TERMS> parts;
        parts.each([&](Halves& sum) {
            sum = {from[0], from[size]};
            from += 2 * size;
        });
        parts.extent = {words[at], words[at + size]};
        parts.met = words[at + 2 * size];
        return parts;
    }
};

// Puts together what threads have that are `apart` places from each other, one of which is `place` and below `places`. Afterwards
// the first `apart` threads have it. All threads of the block call this; `memory` has room for a part of each.
template <class T, int TERMS>
__device__ void gather(Parts<T, TERMS>& mine, uint32 place, uint32 apart, uint32 places, char* memory) {
    double* const doubles = reinterpret_cast<double*>(memory);
    using Of = PlacesOfParts<T, TERMS>;
    const Of all{doubles, reinterpret_cast<uint32*>(doubles + Of::DOUBLES * blockDim.x), blockDim.x};
    uint32 half = 1;
    while (2 * half * apart < places) half *= 2;
    for (; half; half /= 2) {
        const uint32 end = places < 2 * half * apart ? places : 2 * half * apart;
        if (place >= half * apart && place < end) all.put(place, mine);
        __syncthreads();
        if (place < half * apart && place + half * apart < end) mine.include(all.get(place + half * apart));
        __syncthreads();
    }
}

// Values and products of float64 may cancel and have as many places as a result: their windows are emptied after so many tiles, for the bound of what
// they leave grows with the cube of their terms (grouped_value.cuh).
constexpr int TILES_OF_SUM = 8;
template <class T, int TERMS>
constexpr bool FLUSHED = SIGNED_TERMS<TERMS> && sizeof(T) == 8;

// A block leaves `once` parts of each slot in memory, or rounds them if there is none.
template <class T, int TERMS, bool VECTORS, int FLIGHT>
__device__ void sum_columns(const From<T, TERMS>& data, const ColumnsOf& of, const Counted& counted, const PlacesOfParts<T, TERMS>& parts,
                            const Results<T>& results, char* memory) {
    constexpr int S = Slots<T, VECTORS>::COUNT;
    const uint64 part = blockIdx.x / of.tiles, first = part * of.periods * of.period;
    const uint64 place = uint64(blockIdx.x % of.tiles) * blockDim.x + threadIdx.x, vectors = (of.total + S - 1) / S;
    uint64 at = first + place, end = first + of.periods * of.period;
    if (end > vectors) end = vectors;
    if (place >= of.period) end = at;
    using Reader = ColumnsFrom<T, TERMS, VECTORS, FLIGHT>;
    const Reader from(data, of.total, of.period);
    Sums<T, TERMS> sums[S];
    Parts<T, TERMS> others[S];
    int tiles = 0;
#pragma unroll 1
    for (; at < end; at += FLIGHT * of.period) {
        const typename Reader::Read read = from.read(at, end);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            auto slot = Reader::slot(read, s);
            sums[s].add(slot, counted.terms);
        }
        if (!FLUSHED<T, TERMS> || ++tiles < TILES_OF_SUM) continue;
        tiles = 0;
#pragma unroll
        for (int s = 0; s < S; ++s)
            if constexpr (FLUSHED<T, TERMS>) sums[s].flush(others[s], counted.terms);
    }
    Parts<T, TERMS> left[S];
#pragma unroll
    for (int s = 0; s < S; ++s) {
        left[s] = sums[s].parts(counted.terms);
        if constexpr (FLUSHED<T, TERMS>) left[s].include(others[s]);
    }
#pragma unroll (SQUARED<TERMS> ? 1 : S)  // the code of a value of squares is long
    for (int s = 0; s < S; ++s) {
        Parts<T, TERMS> mine = left[s];
        if (of.once < of.period) gather(mine, uint32(place), of.once, uint32(of.period), memory);
        if (place >= of.once) continue;
        if (parts.doubles) parts.put((part * of.once + place) * S + s, mine);
        else results.put(place * S + s, mine, counted, of.rows);
    }
}

// A block puts the parts of `beside` neighbouring values together. Its threads whose places are so many apart have the same value.
template <class T, int TERMS>
__device__ void close_parts_of(const PlacesOfParts<T, TERMS>& parts, uint64 width, uint64 height, uint32 beside, const Counted& counted,
                               const Results<T>& results, char* memory) {
    const uint32 rows = blockDim.x / beside, place = threadIdx.x;
    const uint64 value = uint64(blockIdx.x) * beside + place % beside;
    Parts<T, TERMS> sum;
    if (value < width && place < rows * beside)
#pragma unroll 2
        for (uint64 at = value + place / beside * width; at < parts.size; at += rows * width) sum.include(parts.get(at));
    gather(sum, place, beside, rows * beside, memory);
    if (place < beside && value < width) results.put(value, sum, counted, height);
}

// Rows, each in parts of a warp: what it has of a part is that of a column.
template <class T, int TERMS, bool VECTORS, int FLIGHT>
__device__ void sum_parts_of_rows(const From<T, TERMS>& data, const Spans& spans, int bits, const PlacesOfParts<T, TERMS>& parts) {
    const uint64 span = (uint64(blockIdx.x) * blockDim.x + threadIdx.x) / 32, rows = spans.count / spans.parts;
    uint64 begin = 0, end = 0;
    if (span < spans.count) spans.bounds(span, begin, end);
    Parts<T, TERMS> sum = parts_of_span<T, TERMS, 32, VECTORS, FLIGHT>(data, begin, end, bits);
    if (threadIdx.x % 32 == 0 && span < spans.count) parts.put(span % spans.parts * rows + span / spans.parts, sum);
}

// Columns of few rows: a thread has the columns of one vector. Of values of float64 there are no more than FLIGHT rows.
template <class T, int TERMS, bool VECTORS, int FLIGHT>
struct ShortColumns {
    static constexpr int S = Slots<T, VECTORS>::COUNT;
    using Of = Slots<T, VECTORS>;
    using First = FirstSums<T, TERMS>;
    const T* data;
    uint64 vectors;
    uint32 height;
    const Results<T>& results;

    __device__ uint64 place() const { return uint64(blockIdx.x) * blockDim.x + threadIdx.x; }
    __device__ ColumnTile<T, VECTORS, FLIGHT> rows_from(uint32 row) const {
        ColumnTile<T, VECTORS, FLIGHT> read;
#pragma unroll
        for (int k = 0; k < FLIGHT; ++k)
            read.vectors[k] = place() < vectors && row + k < height ? Of::load(data + (place() + (row + k) * vectors) * S) : zeros<T>(true);
        return read;
    }

    __device__ void run() const {
        T values[S];
        uint32 open = 0;
        if constexpr (TRIED<T, TERMS>) open = tried(values);
        else windowed(values);
        if (place() >= vectors) return;
        if constexpr (VECTORS) {
            uint4 words;
            memcpy(&words, values, 16);
            reinterpret_cast<uint4*>(results.values)[place()] = words;
        } else {
            results.values[place()] = values[0];
        }
#pragma unroll 1
        for (int s = 0; open >> s; ++s)
            if (open >> s & 1) put_windowed(place() * S + s);
    }

    __device__ void windowed(T (&values)[S]) const {
        const ColumnTile<T, VECTORS, FLIGHT> read = rows_from(0);
#pragma unroll
        for (int s = 0; s < S; ++s) {
            Column<T, FLIGHT> column = read.slot(s);
            values[s] = row_value<T, 1>(column, height, place() < vectors, results);
        }
    }

    // A bit of the result for each column whose value is not certain without windows.
    __device__ uint32 tried(T (&values)[S]) const {
        First sums[S];
#pragma unroll 1
        for (uint32 row = 0; row < height; row += FLIGHT) {
            const ColumnTile<T, VECTORS, FLIGHT> read = rows_from(row);
#pragma unroll
            for (int s = 0; s < S; ++s)
#pragma unroll
                for (int k = 0; k < FLIGHT; ++k) sums[s].add(read.vectors[k][s]);
        }
        ShortEnd end{results.finish, results.ddof};
        if constexpr (TERMS == MOMENTS) end.set(height);
        uint32 open = 0;
#pragma unroll
        for (int s = 0; s < S; ++s) {
            const auto element = [&](int row) { return place() < vectors ? data[(place() + row * vectors) * S + s] : T(0); };
            open |= uint32(!short_value<TERMS>(values[s], sums[s], height, end, element)) << s;
        }
        return open;
    }

    // Reads a column again, and adds it up in windows.
    __device__ void put_windowed(uint64 number) const {
        Sums<T, TERMS> sums;
        const Counted counted{bits_of_count(uint64(height + FLIGHT - 1) / FLIGHT * (FLIGHT + 1)), 0, 0};
#pragma unroll 1
        for (uint32 row = 0; row < height; row += FLIGHT) {
            Column<T, FLIGHT> column;
#pragma unroll
            for (int k = 0; k < FLIGHT; ++k) {
                set_bits(column.elements[k], SIGN<T>);
                if (row + k < height) column.elements[k] = data[number + (row + k) * vectors * S];
            }
            sums.add(column, counted.terms);
        }
        results.put(number, sums.parts(counted.terms), counted, height);
    }
};
