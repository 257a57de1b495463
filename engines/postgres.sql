-- Exact sums in Postgres, without anything compiled: aggregates over numeric, whose sums are exact.
-- An administrator installs them into a database:  python -m warpfold.engines.postgres | psql DATABASE
--
--   warpfold_sum(x), _mean(x), _norm1(x)                 Σ x, Σ x / n and Σ |x|, correctly rounded; null of no elements
--   warpfold_sum_squares(x), _norm2(x), _dot(x, y)       Σ x², √ Σ x² and Σ x y
--   warpfold_var_pop(x), _var_samp, _stddev_pop, _stddev_samp   variances of the exact mean, and their roots
--   warpfold_state(x), _squares(x), _products(x, y)      the bytes of the exact states of Σ x, Σ x² and Σ x y
--   warpfold_merge(state)                                the bytes of merged states
--   warpfold_state_sum(s), _state_mean(s), _state_norm2(s), _state_count(s)   the value of a state, and its count
--   warpfold_state_var_pop(s, squares) and the other three   variances of the states of the same elements
--
-- All stand in the schema warpfold. Elements are double precision or bigint; docs/exact-state.md describes the bytes.

BEGIN;

CREATE SCHEMA IF NOT EXISTS warpfold;

-- What an aggregate has added up: the sum of its finite terms as total + near / 2^92, how many terms there are, and the
-- flags of a state.
DO $$
BEGIN
    CREATE TYPE warpfold.running AS (total numeric, near numeric, terms bigint, flags integer);
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- The same with the sum of squares, as squares + near_squares / 2^184.
DO $$
BEGIN
    CREATE TYPE warpfold.moments AS (
        total numeric, near numeric, terms bigint, flags integer, squares numeric, near_squares numeric
    );
EXCEPTION WHEN duplicate_object THEN NULL;
END $$;

-- 2^n as an exact numeric: 2^-n = 5^n / 10^n.
CREATE OR REPLACE FUNCTION warpfold.power_of_two(n integer) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF n >= 0 THEN
        RETURN trunc(2::numeric ^ n);
    END IF;
    RETURN trunc(5::numeric ^ (-n)) * ('1e' || n)::numeric;
END $$;

-- A double as an exact numeric. A cast would keep 15 digits.
CREATE OR REPLACE FUNCTION warpfold.exactly(x double precision) RETURNS numeric
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    bits constant bigint := ('x' || encode(float8send(x), 'hex'))::bit(64)::bigint;
    exponent integer := (bits >> 52) & 2047;
    significand bigint := bits & 4503599627370495;
BEGIN
    IF exponent = 0 THEN
        exponent := 1;
    ELSE
        significand := significand | 4503599627370496;
    END IF;
    IF bits < 0 THEN
        significand := -significand;
    END IF;
    RETURN significand * warpfold.power_of_two(exponent - 1075);
END $$;

-- The nearest double, ties to even; zero has the sign that the flags say.
CREATE OR REPLACE FUNCTION warpfold.nearest(total numeric, flags integer) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    IF total = 0 THEN
        RETURN CASE WHEN flags & 8 = 0 THEN '-0'::double precision ELSE 0 END;
    ELSIF abs(total) >= warpfold.power_of_two(1024) - warpfold.power_of_two(970) THEN
        RETURN sign(total)::double precision * 'Infinity'::double precision;
    ELSIF abs(total) <= warpfold.power_of_two(-1075) THEN
        RETURN CASE WHEN total < 0 THEN '-0'::double precision ELSE 0 END;
    END IF;
    RETURN total::double precision;  -- by way of its digits, which are read correctly rounded
END $$;

CREATE OR REPLACE FUNCTION warpfold.special(flags integer) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE
        WHEN flags & 1 <> 0 OR flags & 6 = 6 THEN 'NaN'::double precision
        WHEN flags & 2 <> 0 THEN 'Infinity'::double precision
        WHEN flags & 4 <> 0 THEN '-Infinity'::double precision
    END
$$;

CREATE OR REPLACE FUNCTION warpfold.add(state warpfold.running, x double precision) RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    high double precision;
BEGIN
    -- From 2^-40 on an element is a multiple of 2^-92, and below 2^32 its parts above and below 2^-30 fit 62 bits each.
    IF abs(x) BETWEEN 9.094947017729282e-13 AND 4294967295 THEN
        high := trunc(x * 1073741824);
        RETURN (
            state.total,
            state.near + high::bigint * 4611686018427387904::numeric
                + ((x * 1073741824 - high) * 4611686018427387904)::bigint,
            state.terms + 1,
            state.flags | 8
        );
    END IF;
    state.terms := state.terms + 1;
    IF x = 'NaN' THEN
        state.flags := state.flags | 9;
    ELSIF x = 'Infinity' THEN
        state.flags := state.flags | 10;
    ELSIF x = '-Infinity' THEN
        state.flags := state.flags | 12;
    ELSIF x <> 0 THEN
        state.total := state.total + warpfold.exactly(x);
        state.flags := state.flags | 8;
    ELSIF float8send(x) = '\x0000000000000000' THEN
        state.flags := state.flags | 8;
    END IF;
    RETURN state;
END $$;

CREATE OR REPLACE FUNCTION warpfold.add(state warpfold.running, x bigint) RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (state.total + x, state.near, state.terms + 1, state.flags | 8);
END $$;

CREATE OR REPLACE FUNCTION warpfold.add(state warpfold.running, more warpfold.running) RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (state.total + more.total, state.near + more.near, state.terms + more.terms, state.flags | more.flags);
END $$;

CREATE OR REPLACE FUNCTION warpfold.whole(state warpfold.running) RETURNS numeric
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT state.total + state.near * warpfold.power_of_two(-92)
$$;

CREATE OR REPLACE FUNCTION warpfold.sum_of(state warpfold.running) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN state.terms > 0
        THEN coalesce(warpfold.special(state.flags), warpfold.nearest(warpfold.whole(state), state.flags)) END
$$;

-- The quotient is cut off behind 1100 digits, more than any tie between two doubles has, and gets a digit more where
-- something was cut off.
CREATE OR REPLACE FUNCTION warpfold.mean_of(state warpfold.running) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    scaled constant numeric := trunc(warpfold.whole(state) * '1e1100'::numeric);
    quotient numeric;
BEGIN
    IF state.terms = 0 THEN
        RETURN NULL;
    ELSIF warpfold.special(state.flags) IS NOT NULL THEN
        RETURN warpfold.special(state.flags);
    END IF;
    quotient := div(scaled, state.terms);
    IF quotient * state.terms = scaled THEN
        RETURN warpfold.nearest(quotient * '1e-1100'::numeric, state.flags);
    END IF;
    RETURN warpfold.nearest((quotient * 10 + sign(scaled)) * '1e-1101'::numeric, state.flags);
END $$;

-- The low bytes of a number, lowest first.
CREATE OR REPLACE FUNCTION warpfold.little_endian(value bigint, bytes integer) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    made bytea := decode(repeat('00', bytes), 'hex');
BEGIN
    FOR place IN 0 .. bytes - 1 LOOP
        made := set_byte(made, place, ((value >> (8 * place)) & 255)::integer);
    END LOOP;
    RETURN made;
END $$;

CREATE OR REPLACE FUNCTION warpfold.number_at(bytes bytea, start integer, count integer) RETURNS bigint
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    value bigint := 0;
BEGIN
    FOR place IN 0 .. count - 1 LOOP
        value := value | (get_byte(bytes, start + place)::bigint << (8 * place));
    END LOOP;
    RETURN value;
END $$;

CREATE OR REPLACE FUNCTION warpfold.bytes_of(state warpfold.running) RETURNS bytea
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    base constant numeric := 4294967296;
    products constant boolean := state.flags & 32 <> 0;
    rest numeric := trunc(  -- in units of 2^-1074, or of 2^-2148 for products
        warpfold.whole(state) * warpfold.power_of_two(CASE WHEN products THEN 2148 ELSE 1074 END)
    );
    first integer := 0;
    stored integer := 0;
    digit numeric;
    digits bytea := '';
BEGIN
    IF state.flags & 48 = 48 THEN
        RAISE EXCEPTION 'states of values and of products are sums of different things'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF rest <> 0 THEN
        WHILE mod(rest, base) = 0 LOOP
            rest := div(rest, base);
            first := first + 1;
        END LOOP;
        LOOP
            digit := mod(mod(rest, base) + base, base);
            rest := div(rest - digit, base);
            digits := digits || warpfold.little_endian(digit::bigint, 4);
            stored := stored + 1;
            EXIT WHEN (rest = 0 AND digit < 2147483648) OR (rest = -1 AND digit >= 2147483648);
        END LOOP;
    END IF;
    RETURN '\x5746585301'::bytea || CASE WHEN products THEN '\x01'::bytea ELSE '\x00'::bytea END
        || warpfold.little_endian(state.flags & 15, 2)
        || warpfold.little_endian(state.terms, 8) || warpfold.little_endian(first, 2)
        || warpfold.little_endian(stored, 2) || '\x00000000'::bytea || digits;
END $$;

-- The state of canonical bytes; an error that says which part is wrong. Its flags also say what it adds up: 16 stands for
-- values, 32 for products.
CREATE OR REPLACE FUNCTION warpfold.of_bytes(bytes bytea) RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    state warpfold.running := (0, 0, 0, 0);
    units numeric := 0;
    first integer;
    stored integer;
    products constant boolean := length(bytes) > 5 AND get_byte(bytes, 5) = 1;
    most constant integer := CASE WHEN products THEN 134 ELSE 68 END;
    -- In units, the largest value or product.
    value constant numeric := 9007199254740991 * warpfold.power_of_two(2045);
    largest constant numeric := value * CASE WHEN products THEN value ELSE 1 END;
    wrong text;
BEGIN
    IF length(bytes) < 24 OR substring(bytes FOR 4) <> '\x57465853' THEN
        wrong := 'magic: an exact state begins with WFXS and has at least 24 bytes';
    ELSIF get_byte(bytes, 4) <> 1 THEN
        wrong := format('version: version %s is not known; this is version 1', get_byte(bytes, 4));
    ELSIF get_byte(bytes, 5) > 1 THEN
        wrong := 'terms: a state is of values or of products';
    ELSE
        first := warpfold.number_at(bytes, 16, 2);
        stored := warpfold.number_at(bytes, 18, 2);
        IF length(bytes) <> 24 + 4 * stored THEN
            wrong := format('length: %s bytes, but %s digits make %s', length(bytes), stored, 24 + 4 * stored);
        ELSIF first + stored > most THEN
            wrong := 'limbs: there are more digits than such terms have';
        END IF;
    END IF;
    IF wrong IS NULL THEN
        FOR place IN REVERSE stored - 1 .. 0 LOOP
            units := units * 4294967296 + warpfold.number_at(bytes, 24 + 4 * place, 4);
        END LOOP;
        IF stored > 0 AND get_byte(bytes, 23 + 4 * stored) >= 128 THEN
            units := units - warpfold.power_of_two(32 * stored);
        END IF;
        units := units * warpfold.power_of_two(32 * first);
        state.total := units * warpfold.power_of_two(CASE WHEN products THEN -2148 ELSE -1074 END);
        state.terms := warpfold.number_at(bytes, 8, 8);
        state.flags := get_byte(bytes, 6);
        IF state.terms < 0 OR abs(units) > state.terms * largest THEN
            wrong := format('count: %s terms cannot have such a sum', state.terms);
        ELSIF state.flags > 15 OR (state.terms = 0 AND state.flags <> 0)
            OR (state.flags & 8 = 0 AND (state.flags <> 0 OR units <> 0)) THEN
            wrong := format('flags: %s terms with such a sum cannot have %s', state.terms, state.flags);
        ELSE
            state.flags := state.flags | CASE WHEN products THEN 32 ELSE 16 END;
            IF warpfold.bytes_of(state) <> bytes THEN
                wrong := 'limbs: the bytes are not the canonical ones';
            END IF;
        END IF;
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'these bytes are no exact state: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    RETURN state;
END $$;

CREATE OR REPLACE FUNCTION warpfold.add(state warpfold.running, more bytea) RETURNS warpfold.running
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT warpfold.add(state, warpfold.of_bytes(more))
$$;

CREATE OR REPLACE FUNCTION warpfold.warpfold_state_sum(state bytea) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(warpfold.sum_of(warpfold.of_bytes(state)), 0)
$$;

CREATE OR REPLACE FUNCTION warpfold.warpfold_state_mean(state bytea) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT warpfold.mean_of(warpfold.of_bytes(state))
$$;

CREATE OR REPLACE FUNCTION warpfold.warpfold_state_count(state bytea) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (warpfold.of_bytes(state)).terms
$$;

CREATE OR REPLACE FUNCTION warpfold.add_magnitude(state warpfold.running, x double precision) RETURNS warpfold.running
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT warpfold.add(state, abs(x))
$$;

CREATE OR REPLACE FUNCTION warpfold.add_magnitude(state warpfold.running, x bigint) RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (state.total + abs(x::numeric), state.near, state.terms + 1, state.flags | 8);
END $$;

CREATE OR REPLACE FUNCTION warpfold.add_product(state warpfold.running, x double precision, y double precision)
RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    -- A zero counts as negative by its first byte.
    negative constant boolean := (get_byte(float8send(x), 0) >= 128) <> (get_byte(float8send(y), 0) >= 128);
BEGIN
    state.terms := state.terms + 1;
    state.flags := state.flags | 32;
    IF x = 'NaN' OR y = 'NaN' OR (abs(x) = 'Infinity' AND y = 0) OR (x = 0 AND abs(y) = 'Infinity') THEN
        state.flags := state.flags | 9;
    ELSIF abs(x) = 'Infinity' OR abs(y) = 'Infinity' THEN
        state.flags := state.flags | CASE WHEN negative THEN 12 ELSE 10 END;
    ELSIF x = 0 OR y = 0 THEN
        state.flags := state.flags | CASE WHEN negative THEN 0 ELSE 8 END;
    ELSE
        state.total := state.total + warpfold.exactly(x) * warpfold.exactly(y);
        state.flags := state.flags | 8;
    END IF;
    RETURN state;
END $$;

CREATE OR REPLACE FUNCTION warpfold.add_product(state warpfold.running, x bigint, y bigint) RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (state.total + x::numeric * y, state.near, state.terms + 1, state.flags | 40);
END $$;

CREATE OR REPLACE FUNCTION warpfold.add_moments(state warpfold.moments, x double precision) RETURNS warpfold.moments
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    high double precision;
    scaled numeric;
    summed warpfold.running;
BEGIN
    IF abs(x) BETWEEN 9.094947017729282e-13 AND 4294967295 THEN
        high := trunc(x * 1073741824);
        scaled := high::bigint * 4611686018427387904::numeric
            + ((x * 1073741824 - high) * 4611686018427387904)::bigint;
        RETURN (
            state.total, state.near + scaled, state.terms + 1, state.flags | 8,
            state.squares, state.near_squares + scaled * scaled
        );
    END IF;
    summed := warpfold.add((state.total, state.near, state.terms, state.flags)::warpfold.running, x);
    IF x <> 0 AND abs(x) < 'Infinity' THEN
        scaled := warpfold.exactly(x);
        state.squares := state.squares + scaled * scaled;
    END IF;
    RETURN (summed.total, summed.near, summed.terms, summed.flags, state.squares, state.near_squares);
END $$;

CREATE OR REPLACE FUNCTION warpfold.add_moments(state warpfold.moments, x bigint) RETURNS warpfold.moments
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (
        state.total + x, state.near, state.terms + 1, state.flags | 8,
        state.squares + x::numeric * x, state.near_squares
    );
END $$;

CREATE OR REPLACE FUNCTION warpfold.add(state warpfold.moments, more warpfold.moments) RETURNS warpfold.moments
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
BEGIN
    RETURN (
        state.total + more.total, state.near + more.near, state.terms + more.terms, state.flags | more.flags,
        state.squares + more.squares, state.near_squares + more.near_squares
    );
END $$;

-- The sum of the squares: an infinity has the square ∞, and no square is negative.
CREATE OR REPLACE FUNCTION warpfold.squares_of(state warpfold.moments) RETURNS warpfold.running
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT (
        state.squares + state.near_squares * warpfold.power_of_two(-184),
        0,
        state.terms,
        32 | (state.flags & 1) | CASE WHEN state.flags & 6 <> 0 THEN 2 ELSE 0 END
            | CASE WHEN state.terms > 0 THEN 8 ELSE 0 END
    )::warpfold.running
$$;

-- √(numerator / denominator) rounded once: the integer root of its 2^2400-fold, which has a digit more where it was cut off.
CREATE OR REPLACE FUNCTION warpfold.root(numerator numeric, denominator numeric) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    scaled constant numeric := trunc(numerator * warpfold.power_of_two(4600));
    square constant numeric := div(scaled, denominator);
    root numeric := trunc(sqrt(square));
BEGIN
    WHILE root * root > square LOOP
        root := root - 1;
    END LOOP;
    IF root * root * denominator <> scaled THEN
        root := root + 0.1;
    END IF;
    RETURN warpfold.nearest(root * warpfold.power_of_two(-2300), 8);
END $$;

-- numerator / denominator rounded once, as a mean is.
CREATE OR REPLACE FUNCTION warpfold.ratio(numerator numeric, denominator numeric) RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    scaled constant numeric := trunc(numerator * '1e2200'::numeric);
    quotient constant numeric := div(scaled, denominator);
BEGIN
    IF quotient * denominator = scaled THEN
        RETURN warpfold.nearest(quotient * '1e-2200'::numeric, 8);
    END IF;
    RETURN warpfold.nearest((quotient * 10 + 1) * '1e-2201'::numeric, 8);
END $$;

CREATE OR REPLACE FUNCTION warpfold.spread(sums warpfold.running, squares warpfold.running, ddof integer, rooted boolean)
RETURNS double precision
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    whole constant numeric := warpfold.whole(sums);
    numerator constant numeric := sums.terms * warpfold.whole(squares) - whole * whole;
    denominator constant numeric := sums.terms::numeric * (sums.terms - ddof);
BEGIN
    IF sums.flags & 32 <> 0 OR squares.flags & 16 <> 0 OR sums.terms <> squares.terms OR numerator < 0 THEN
        RAISE EXCEPTION 'a variance needs the states of the values and of the squares of the same elements'
            USING ERRCODE = 'invalid_parameter_value';
    ELSIF sums.terms <= ddof THEN
        RETURN NULL;
    ELSIF warpfold.special(sums.flags) IS NOT NULL OR warpfold.special(squares.flags) IS NOT NULL THEN
        RETURN 'NaN';
    END IF;
    RETURN CASE WHEN rooted THEN warpfold.root(numerator, denominator) ELSE warpfold.ratio(numerator, denominator) END;
END $$;

CREATE OR REPLACE FUNCTION warpfold.norm2_of(state warpfold.running) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN state.terms > 0
        THEN coalesce(warpfold.special(state.flags), warpfold.root(warpfold.whole(state), 1)) END
$$;

CREATE OR REPLACE FUNCTION warpfold.warpfold_state_norm2(state bytea) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(warpfold.norm2_of(warpfold.of_bytes(state)), 0)
$$;

CREATE OR REPLACE FUNCTION warpfold.root_of_squares(state warpfold.moments) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT warpfold.norm2_of(warpfold.squares_of(state))
$$;

CREATE OR REPLACE FUNCTION warpfold.sum_of_squares(state warpfold.moments) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT warpfold.sum_of(warpfold.squares_of(state))
$$;

CREATE OR REPLACE FUNCTION warpfold.bytes_of_squares(state warpfold.moments) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT warpfold.bytes_of(warpfold.squares_of(state))
$$;

CREATE OR REPLACE FUNCTION warpfold.bytes_of_products(state warpfold.running) RETURNS bytea
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT warpfold.bytes_of((state.total, state.near, state.terms, state.flags | 32)::warpfold.running)
$$;

-- The variances of both kinds: as what is made of the moments of a group, and of the states of values and squares.
DO $$
DECLARE
    name text;
    arguments text;
BEGIN
    FOR name, arguments IN VALUES
        ('var_pop', '0, false'), ('var_samp', '1, false'), ('stddev_pop', '0, true'), ('stddev_samp', '1, true')
    LOOP
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION warpfold.%s_of(state warpfold.moments) RETURNS double precision'
            ' LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $f$ SELECT warpfold.spread('
            '(state.total, state.near, state.terms, state.flags)::warpfold.running, warpfold.squares_of(state), %s) $f$',
            name, arguments
        );
        EXECUTE format(
            'CREATE OR REPLACE FUNCTION warpfold.warpfold_state_%s(state bytea, squares bytea) RETURNS double precision'
            ' LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $f$'
            ' SELECT warpfold.spread(warpfold.of_bytes(state), warpfold.of_bytes(squares), %s) $f$',
            name, arguments
        );
    END LOOP;
END $$;

DO $$
DECLARE
    name text;
    element text;
    adding text;
    held text;
    final text;
BEGIN
    FOR name, element, adding, held, final IN
        SELECT made.name, replace(made.takes, 'T', each.element), made.adding, made.held, made.final
        FROM (VALUES
            ('sum', 'T', 'add', 'running', 'sum_of'),
            ('mean', 'T', 'add', 'running', 'mean_of'),
            ('state', 'T', 'add', 'running', 'bytes_of'),
            ('norm1', 'T', 'add_magnitude', 'running', 'sum_of'),
            ('dot', 'T, T', 'add_product', 'running', 'sum_of'),
            ('products', 'T, T', 'add_product', 'running', 'bytes_of_products'),
            ('sum_squares', 'T', 'add_moments', 'moments', 'sum_of_squares'),
            ('norm2', 'T', 'add_moments', 'moments', 'root_of_squares'),
            ('squares', 'T', 'add_moments', 'moments', 'bytes_of_squares'),
            ('var_pop', 'T', 'add_moments', 'moments', 'var_pop_of'),
            ('var_samp', 'T', 'add_moments', 'moments', 'var_samp_of'),
            ('stddev_pop', 'T', 'add_moments', 'moments', 'stddev_pop_of'),
            ('stddev_samp', 'T', 'add_moments', 'moments', 'stddev_samp_of')
        ) AS made (name, takes, adding, held, final), (VALUES ('double precision'), ('bigint')) AS each (element)
        UNION ALL SELECT 'merge', 'bytea', 'add', 'running', 'bytes_of'
    LOOP
        IF to_regprocedure(format('warpfold.warpfold_%s(%s)', name, element)) IS NULL THEN
            EXECUTE format(
                'CREATE AGGREGATE warpfold.warpfold_%s(%s) (SFUNC = warpfold.%s, STYPE = warpfold.%s,'
                ' FINALFUNC = warpfold.%s, COMBINEFUNC = warpfold.add, INITCOND = %L, PARALLEL = SAFE)',
                name, element, adding, held, final,
                CASE held WHEN 'running' THEN '(0,0,0,0)' ELSE '(0,0,0,0,0,0)' END
            );
        END IF;
    END LOOP;
END $$;

COMMIT;
