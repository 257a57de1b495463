-- Exact sums in Postgres, without anything compiled: aggregates over numeric, whose sums are exact.
-- An administrator installs them into a database:  python -m warpfold.engines.postgres | psql DATABASE
--
--   warpfold_sum(x), warpfold_mean(x)             the correctly rounded sum and mean; null of no elements
--   warpfold_state(x), warpfold_merge(state)      the bytes of the exact state, and of merged states
--   warpfold_state_sum(s), warpfold_state_mean(s) the value of a state
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
    rest numeric := trunc(warpfold.whole(state) * warpfold.power_of_two(1074));  -- in units of 2^-1074
    first integer := 0;
    stored integer := 0;
    digit numeric;
    digits bytea := '';
BEGIN
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
    RETURN '\x57465853'::bytea || '\x0100'::bytea || warpfold.little_endian(state.flags, 2)
        || warpfold.little_endian(state.terms, 8) || warpfold.little_endian(first, 2)
        || warpfold.little_endian(stored, 2) || '\x00000000'::bytea || digits;
END $$;

-- The state of canonical bytes; an error that says which part is wrong.
CREATE OR REPLACE FUNCTION warpfold.of_bytes(bytes bytea) RETURNS warpfold.running
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    state warpfold.running := (0, 0, 0, 0);
    units numeric := 0;
    first integer;
    stored integer;
    wrong text;
BEGIN
    IF length(bytes) < 24 OR substring(bytes FOR 4) <> '\x57465853' THEN
        wrong := 'magic: an exact state begins with WFXS and has at least 24 bytes';
    ELSIF get_byte(bytes, 4) <> 1 THEN
        wrong := format('version: version %s is not known; this is version 1', get_byte(bytes, 4));
    ELSIF get_byte(bytes, 5) <> 0 THEN
        wrong := 'terms: states of values are merged here, and these are not';
    ELSE
        first := warpfold.number_at(bytes, 16, 2);
        stored := warpfold.number_at(bytes, 18, 2);
        IF length(bytes) <> 24 + 4 * stored THEN
            wrong := format('length: %s bytes, but %s digits make %s', length(bytes), stored, 24 + 4 * stored);
        ELSIF first + stored > 68 THEN
            wrong := 'limbs: there are more digits than values have';
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
        state.total := units * warpfold.power_of_two(-1074);
        state.terms := warpfold.number_at(bytes, 8, 8);
        state.flags := get_byte(bytes, 6);
        IF state.terms < 0 OR abs(units) > state.terms * 9007199254740991 * warpfold.power_of_two(2045) THEN
            wrong := format('count: %s terms cannot have such a sum', state.terms);
        ELSIF state.flags > 15 OR (state.terms = 0 AND state.flags <> 0)
            OR (state.flags & 8 = 0 AND (state.flags <> 0 OR units <> 0)) THEN
            wrong := format('flags: %s terms with such a sum cannot have %s', state.terms, state.flags);
        ELSIF warpfold.bytes_of(state) <> bytes THEN
            wrong := 'limbs: the bytes are not the canonical ones';
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

DO $$
DECLARE
    element text;
    name text;
    final text;
BEGIN
    FOR name, final, element IN
        SELECT made.name, made.final, takes.element
        FROM (VALUES ('sum', 'sum_of'), ('mean', 'mean_of'), ('state', 'bytes_of')) AS made (name, final),
             (VALUES ('double precision'), ('bigint')) AS takes (element)
        UNION ALL SELECT 'merge', 'bytes_of', 'bytea'
    LOOP
        IF to_regprocedure(format('warpfold.warpfold_%s(%s)', name, element)) IS NULL THEN
            EXECUTE format(
                'CREATE AGGREGATE warpfold.warpfold_%s(%s) (SFUNC = warpfold.add, STYPE = warpfold.running,'
                ' FINALFUNC = warpfold.%s, COMBINEFUNC = warpfold.add, INITCOND = ''(0,0,0,0)'', PARALLEL = SAFE)',
                name, element, final
            );
        END IF;
    END LOOP;
END $$;

COMMIT;
