/* Perf event arrays and program arrays: every result of perf_event_output, and that what the host drains is what was put in,
 * in order, with the packet's bytes behind it.
 */
#include "../state/perf_event_array.h"
#include "../state/prog_array.h"
#include "check.h"

static const struct shape shape = { .key_bytes = 4, .value_bytes = 4, .capacity = 4 };

static u8 expected[64][64];
static u64 expected_length[64];
static u32 drained;

static void compare(void *context, u32 object, const u8 *bytes, u64 length)
{
    (void)context;
    CHECK(object == 7 && length == expected_length[drained]);
    CHECK(!memcmp(bytes, expected[drained], length));
    drained++;
}

static void records(void)
{
    static u8 frame[48], meta[8];
    struct mr_packet pkt = { .data = frame, .end = frame + sizeof(frame), .cpu = 2 };
    struct perf_event_array p;

    CHECK(!perf_event_array_create(&p, &shape, &check_config, NULL));
    for (u32 i = 0; i < 64; i++) {
        u64 length = draw(9), bytes = draw(sizeof(frame) + 1);
        u64 flags = (draw(2) ? 2 : PERF_THIS_CPU) | bytes << 32;

        for (u32 j = 0; j < sizeof(frame); j++)
            frame[j] = (u8)draw(256);
        for (u32 j = 0; j < sizeof(meta); j++)
            meta[j] = (u8)draw(256);
        memcpy(expected[i], meta, length);
        memcpy(expected[i] + length, frame, bytes);
        expected_length[i] = length + bytes;
        CHECK(perf_event_array_perf_event_output(&p, &shape, flags, meta, length, &pkt) == 0);
    }
    CHECK(perf_event_array_count(&p, &shape, 0) == 64);
    perf_event_array_drain(&p, &shape, 7, compare, NULL);
    CHECK(drained == 64 && perf_event_array_count(&p, &shape, 0) == 0);

#define OUT(flags) perf_event_array_perf_event_output(&p, &shape, flags, meta, 8, &pkt)
    CHECK(OUT(1ull << 52) == mr_errno(EINVAL) && OUT(1ull << 63) == mr_errno(EINVAL));
    CHECK(OUT(2 | 49ull << 32) == mr_errno(EFAULT) && OUT(2 | 48ull << 32) == 0);
    CHECK(OUT(4) == mr_errno(E2BIG) && OUT(3) == mr_errno(EOPNOTSUPP));
    /* In the kernel's order of complaints. */
    CHECK(OUT(1ull << 52 | 49ull << 32) == mr_errno(EINVAL) && OUT(9 | 49ull << 32) == mr_errno(EFAULT));
    u64 last = 0, more = 0;
    while (!last && more++ < PERF_BYTES)
        last = OUT(2);
    CHECK(last == mr_errno(ENOSPC));
    perf_event_array_destroy(&p, &shape);
}

static void programs(void)
{
    static const u32 initial[4] = { 2, 0, 1, 3 };
    struct prog_array a;

    CHECK(!prog_array_create(&a, &shape, &check_config, (const u8 *)initial));
    for (u64 i = 0; i < 8; i++)
        CHECK(prog_array_tail_call(&a, &shape, i, NULL) == (i < 4 ? initial[i] : 0));
    CHECK(prog_array_tail_call(&a, &shape, 1ull << 32, NULL) == 2); /* an index is 32 bits wide */
    CHECK(prog_array_count(&a, &shape, 0) == 3);
    prog_array_destroy(&a, &shape);
}

int main(void)
{
    records();
    programs();
    return check_report();
}
