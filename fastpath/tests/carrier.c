/* carrier and recover against input that no sequencer sends: truncated, forged, with other times, at the end of numbers. */
#define HISTORY_ROW_BYTES 64u
#include "recover_model.h"

static const struct carrier_shape shape = { .slots = 5, .row_bytes = 7, .time = 2 };
static u64 word[128], times[128];
static u8 beat[128];
static u8 good[512];
static u64 good_bytes;

/* Bytes that end where the memory ends, so that AddressSanitizer sees what is read behind them. */
static enum carrier_refusal read_exactly(const struct carrier_shape *s, const u8 *p, u64 bytes, struct carrier *c)
{
    u8 *copy = (u8 *)malloc(bytes ? bytes : 1);
    enum carrier_refusal got;

    memcpy(copy, p, bytes);
    got = carrier_read(c, s, copy, bytes);
    if (got == CARRIER_TAKEN) {
        CHECK(c->packet - copy == (s64)carrier_bytes(s) && c->packet_bytes == bytes - carrier_bytes(s));
        CHECK(c->seq - c->oldest < s->slots || c->oldest == c->seq + 1);
    }
    free(copy);
    return got;
}

static void fill(u64 stamp_of_first, u64 apart)
{
    for (u64 n = 1; n < 128; n++) {
        word[n] = mr_random(3, n) >> 8;
        times[n] = stamp_of_first + n * apart;
        beat[n] = n % 6 == 0;
    }
}

static void make(u64 seq, u32 flags, u64 stamp)
{
    memset(good, 0, sizeof good);
    good_bytes = model_emit(good, &shape, seq, flags, stamp, word, beat, times);
}

static enum carrier_refusal with(u64 at, u8 value, struct carrier *c)
{
    u8 was = good[at];
    enum carrier_refusal got;

    good[at] = value;
    got = read_exactly(&shape, good, good_bytes, c);
    good[at] = was;
    return got;
}

static void fields(void)
{
    struct carrier c;
    u64 whole = carrier_bytes(&shape);

    CHECK(whole == 34 + 1 + 35);
    fill((1ull << 40) - 3000, 1000); /* the low 40 bits wrap among the rows */
    make(9, CARRIER_TOUCH, times[9]);
    good[3] = 0; good[4] = 1; good[5] = 2; good[10] = 3; good[11] = 4;
    CHECK(read_exactly(&shape, good, good_bytes, &c) == CARRIER_TAKEN);
    for (u64 n = c.oldest; n <= c.seq; n++)
        CHECK(carrier_at(&c, &shape, n) == carrier_slot(&shape, n));
    CHECK(c.seq == 9 && c.oldest == 5 && c.flags == CARRIER_TOUCH && c.core == 0x102 && c.port == 0x304);
    for (u64 n = 5; n <= 9; n++)
        CHECK(c.time[carrier_slot(&shape, n)] == times[n] && (c.beats >> carrier_slot(&shape, n) & 1) == beat[n]);
    for (u64 bytes = 0; bytes < whole; bytes++)
        CHECK(read_exactly(&shape, good, bytes, &c) == CARRIER_SHORT);
    /* A packet of no bytes is the program's matter. */
    CHECK(read_exactly(&shape, good, whole, &c) == CARRIER_TAKEN && c.packet_bytes == 0);
    CHECK(with(12, 8, &c) == CARRIER_FOREIGN && with(14, 0x21, &c) == CARRIER_FOREIGN);
    CHECK(with(15, 6, &c) == CARRIER_SHAPED && with(16, 8, &c) == CARRIER_SHAPED);
    CHECK(with(14, 0x13, &c) == CARRIER_FLAGS && with(14, 0x18, &c) == CARRIER_FLAGS && with(14, 0x12, &c) == CARRIER_FLAGS);
    CHECK(with(17, 3, &c) == CARRIER_INDEX && with(17, 200, &c) == CARRIER_INDEX && with(25, 8, &c) == CARRIER_INDEX);
    CHECK(with(34, 0xe1, &c) == CARRIER_SLOT);
    /* The own row marked as a heartbeat's. */
    CHECK(with(34, good[34] | 1u << carrier_slot(&shape, 9), &c) == CARRIER_FLAGS);
    CHECK(with(29, 1, &c) == CARRIER_TIMES && with(33, good[33] + 1, &c) == CARRIER_TIMES);
    /* Any other byte in the head is refused, but for a flag, sequences with the same index, and a stamp's upper bits. */
    for (u64 at = 12; at < 34; at++)
        for (u32 value = 0; value < 256; value++)
            CHECK(value == good[at] || with(at, (u8)value, &c) != CARRIER_TAKEN || at == 14 ||
                  (at >= 18 && at < 29 && (c.seq % 5 == 4 || at >= 26)));
    CHECK(with(14, 0x10, &c) == CARRIER_TAKEN && c.flags == 0);

    /* While there are fewer rows than slots. */
    make(3, CARRIER_TOUCH, times[3]);
    CHECK(read_exactly(&shape, good, good_bytes, &c) == CARRIER_TAKEN && c.oldest == 1);
    CHECK(with(34, 1u << 3, &c) == CARRIER_SLOT && with(whole - 1, 1, &c) == CARRIER_SLOT);
    make(0, 0, 77);
    CHECK(read_exactly(&shape, good, good_bytes, &c) == CARRIER_TAKEN && c.oldest == 1 && c.stamp == 77);
    CHECK(with(14, 0x11, &c) == CARRIER_FLAGS && with(35, 1, &c) == CARRIER_SLOT);
    /* A heartbeat has no packet. */
    make(6, CARRIER_BEAT, times[6]);
    CHECK(read_exactly(&shape, good, good_bytes, &c) == CARRIER_TAKEN);
    CHECK(read_exactly(&shape, good, good_bytes + 1, &c) == CARRIER_FLAGS);
}

/* With a key, nothing but what the sequencer wrote is taken, up to the packet. */
static void tags(void)
{
    struct carrier_shape keyed = shape;
    u8 input[15], bytes[512];
    const u64 key[2] = { 0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull };
    struct carrier c;
    u64 size;

    for (u32 i = 0; i < sizeof input; i++)
        input[i] = (u8)i;
    CHECK(carrier_tag(key, input, sizeof input) == 0xa129ca6149be45e5ull); /* the paper's appendix A */
    keyed.keyed = 1;
    keyed.key[0] = key[0];
    keyed.key[1] = key[1];
    fill(1000, 1000);
    size = model_emit(bytes, &keyed, 9, CARRIER_TOUCH, times[9], word, beat, times);
    CHECK(read_exactly(&keyed, bytes, size, &c) == CARRIER_TAKEN && c.packet_bytes == 1 && c.time[3] == times[9]);
    for (u64 at = 0; at < size; at++) {
        bytes[at] ^= 4;
        CHECK((read_exactly(&keyed, bytes, size, &c) == CARRIER_TAKEN) == (at == size - 1));
        bytes[at] ^= 4;
    }
    keyed.key[1]++;
    CHECK(read_exactly(&keyed, bytes, size, &c) == CARRIER_FORGED);
}

static void distances(void)
{
    struct carrier c;

    for (u32 i = 0; i < 3; i++) {
        u64 apart = CARRIER_GAP + i - 1;

        fill(5, apart);
        make(5, CARRIER_TOUCH, times[5]);
        CHECK(read_exactly(&shape, good, good_bytes, &c) == (i == 2 ? CARRIER_TIMES : CARRIER_TAKEN));
        if (i < 2)
            CHECK(c.time[0] == times[1] && c.time[4] == times[5]);
    }
    /* A row before time 0. */
    fill(0, 10);
    make(5, CARRIER_TOUCH, times[5]);
    CHECK(read_exactly(&shape, good, good_bytes, &c) == CARRIER_TAKEN);
    times[1] = (1ull << 40) - 5;
    make(5, CARRIER_TOUCH, times[5]);
    CHECK(read_exactly(&shape, good, good_bytes, &c) == CARRIER_TIMES);
}

/* Drawn bytes behind a prefix that is nearly right. */
static void noise(void)
{
    struct carrier c;
    u64 taken = 0;

    fill(1000, 1000);
    for (u32 round = 0; round < 20000; round++) {
        u64 seq = 1 + draw(40);

        make(seq, beat[seq] ? CARRIER_BEAT : CARRIER_TOUCH, times[seq]);
        for (u64 i = draw(4); i; i--)
            good[draw(good_bytes)] = (u8)draw(256);
        taken += read_exactly(&shape, good, draw(8) ? good_bytes : draw(good_bytes), &c) == CARRIER_TAKEN;
    }
    CHECK(taken > 1000 && taken < 19000);
}

/* ---- what recover does with what can be read ---- */

static u8 memory[sizeof(struct recover_group) + 2 * 16 * sizeof(struct history_row)] __attribute__((aligned(64)));
static struct recover_group *const group = (struct recover_group *)memory;

static enum recover_put receive(struct recover *r, u64 seq, u32 flags, u64 stamp)
{
    struct carrier c;

    make(seq, flags, stamp);
    CHECK(recover_read(r, &c, &shape, good, good_bytes) == CARRIER_TAKEN);
    return recover_put(group, r, &shape, &c);
}

static void refusals(void)
{
    struct recover r = { .self = 1 }, other = { .self = 0 };
    struct history_row e;

    memset(memory, 0, sizeof memory);
    recover_create(group, 2, 16);
    fill(1000, 1000);
    CHECK(receive(&r, 4, CARRIER_TOUCH, times[4]) == RECOVER_TAKEN);
    CHECK(receive(&r, 4, CARRIER_TOUCH, times[4]) == RECOVER_LATE);
    CHECK(receive(&r, 3, CARRIER_TOUCH, times[3]) == RECOVER_LATE);
    CHECK(receive(&r, 3, 0, times[3] + 5) == RECOVER_LATE);
    CHECK(receive(&r, 4, 0, times[4] + 5) == RECOVER_TAKEN);
    CHECK(r.late == 3 && r.put == 4 && r.lost == 0);
    /* Another row under a number that the core has. */
    word[4]++;
    CHECK(receive(&r, 5, CARRIER_TOUCH, times[5]) == RECOVER_STOP);
    CHECK(group->why == (RECOVER_CONTRADICTED | 1 << 8) && group->at == 4);
    word[4]--;
    CHECK(receive(&r, 5, CARRIER_TOUCH, times[5]) == RECOVER_STOP);
    CHECK(receive(&other, 1, CARRIER_TOUCH, times[1]) == RECOVER_STOP);

    /* A clock that went back, seen in the row that both have, and where they have none. */
    for (u64 seq = 5; seq < 12; seq += 6) {
        memset(memory, 0, sizeof memory);
        recover_create(group, 2, 16);
        r = (struct recover){ .self = 1 };
        fill(50000, 1000);
        CHECK(receive(&r, 4, CARRIER_TOUCH, times[4]) == RECOVER_TAKEN);
        fill(1000, 1000);
        CHECK(receive(&r, seq, CARRIER_TOUCH, times[seq]) == RECOVER_STOP);
        CHECK(group->why == (RECOVER_CONTRADICTED | 1 << 8) && r.put == 4);
    }

    /* What is no carrier is counted by reason. */
    CHECK(recover_read(&r, &(struct carrier){ 0 }, &shape, good, 60) == CARRIER_SHORT && r.refused[CARRIER_SHORT] == 1);

    /* A sequence further ahead than the log is long: after what the core has applied, it is no more to be caught up with. */
    memset(memory, 0, sizeof memory);
    recover_create(group, 2, 16);
    r = (struct recover){ .self = 1 };
    CHECK(receive(&r, 4, CARRIER_TOUCH, times[4]) == RECOVER_TAKEN);
    CHECK(receive(&r, 17, CARRIER_TOUCH, times[17]) == RECOVER_FULL && r.put == 4);
    recover_publish(group, &r);
    while (recover_next(group, &r, &e) != RECOVER_DONE)
        ;
    CHECK(r.applied == 4);
    CHECK(receive(&r, 21, CARRIER_TOUCH, times[21]) == RECOVER_STOP);
    CHECK(group->why == (RECOVER_BEHIND | 1 << 8) && group->at == 21);
    CHECK(recover_next(group, &r, &e) == RECOVER_DONE);

    /* One core alone has nobody to ask. */
    memset(memory, 0, sizeof memory);
    recover_create(group, 1, 16);
    r = (struct recover){ .self = 0 };
    CHECK(receive(&r, 8, CARRIER_TOUCH, times[8]) == RECOVER_TAKEN);
    recover_publish(group, &r);
    for (u64 n = 1; n <= 8; n++)
        CHECK(recover_next(group, &r, &e) == (n < 4 ? RECOVER_GONE : n == 6 ? RECOVER_TIME : RECOVER_APPLY));
    CHECK(r.lost == 3 && e.time == times[8]);
}

/* The last numbers: nothing wraps. */
static void last_numbers(void)
{
    struct carrier_shape plain = { .slots = 3, .row_bytes = 4, .time = CARRIER_NO_TIME };
    struct carrier c;
    struct recover r = { .self = 0 };
    struct history_row e;
    u64 rows = 0;

    memset(memory, 0, sizeof memory);
    recover_create(group, 1, 16);
    r.put = r.applied = CARRIER_LAST - 6;
    group->log[0].head = r.put;
    for (u64 seq = CARRIER_LAST - 5;; seq++) {
        u8 *p = good;

        memset(good, 0, sizeof good);
        p[12] = 0x88; p[13] = 0xb5; p[14] = 0x11; p[15] = 3; p[16] = 4; p[17] = (u8)(seq % 3);
        mr_store64(p + 18, __builtin_bswap64(seq));
        if (seq == ~0ull) {
            CHECK(read_exactly(&plain, good, 80, &c) == CARRIER_NUMBER);
            break;
        }
        CHECK(carrier_read(&c, &plain, good, 80) == CARRIER_TAKEN && c.oldest == seq - 2);
        /* The first carrier fits the rows before it only by their number. */
        CHECK(recover_put(group, &r, &plain, &c) == RECOVER_TAKEN);
        recover_publish(group, &r);
        while (recover_next(group, &r, &e) != RECOVER_DONE)
            rows++;
    }
    CHECK(rows == 6 && r.applied == CARRIER_LAST);
}

/* ---- the golden captures of tests/sequencer, which crates/steer writes ---- */

/* All cores receive what a capture holds for them: nothing is refused, late, lost, or another than at the other cores. */
static void golden(const char *path, const u8 *key, u32 packets, u64 rows)
{
    static u8 file[16384];
    struct carrier_shape s = { 0 };
    struct recover r[8] = { { .self = 0 } };
    u64 state[8] = { 0 }, bytes, cores;
    u32 processed = 0;
    FILE *from = fopen(path, "rb");

    CHECK(from != NULL);
    if (!from)
        return;
    bytes = fread(file, 1, sizeof file, from);
    fclose(from);
    CHECK(bytes > 24 + 16 + 30 && bytes < sizeof file);
    s.slots = file[40 + 15];
    s.row_bytes = file[40 + 16];
    s.time = file[40 + 17];
    s.keyed = file[40 + 18];
    CHECK(s.keyed == (key != NULL));
    if (key)
        memcpy(s.key, key, 16);
    cores = (u64)file[40 + 20] << 8 | file[40 + 21];
    CHECK(cores <= 8);
    struct recover_group *g = (struct recover_group *)aligned_alloc(64, mr_round_up(recover_bytes((u32)cores, 16), 64));
    memset(g, 0, recover_bytes((u32)cores, 16));
    recover_create(g, (u32)cores, 16);
    for (u64 at = 24, length; at < bytes; at += 16 + length) {
        struct carrier c;
        struct history_row e;
        enum recover_next next;
        u32 core;

        length = mr_load32(file + at + 8);
        if (at == 24)
            continue;
        core = (u32)file[at + 16 + 4] << 8 | file[at + 16 + 5];
        r[core].self = core;
        CHECK(recover_read(&r[core], &c, &s, file + at + 16, length) == CARRIER_TAKEN);
        CHECK(c.core == core && c.stamp == mr_load32(file + at) * 1000000000ull + mr_load32(file + at + 4));
        CHECK(recover_put(g, &r[core], &s, &c) == RECOVER_TAKEN);
        recover_publish(g, &r[core]);
        while ((next = recover_next(g, &r[core], &e)) != RECOVER_DONE) {
            CHECK(next == RECOVER_APPLY || next == RECOVER_TIME);
            for (u32 i = 0; i < HISTORY_WORDS; i++)
                state[core] = mr_fold(state[core] ^ e.word[i], e.time | 1) + e.seq;
        }
        CHECK(r[core].applied == c.seq);
        processed += c.flags != CARRIER_BEAT;
        if (at + 16 + length < bytes)
            continue;
        CHECK(c.seq == rows);
    }
    CHECK(processed == packets);
    for (u32 core = 0; core < cores; core++) {
        CHECK(!r[core].lost && !r[core].late);
        for (u32 other = 0; other < core; other++)
            CHECK(r[core].applied != r[other].applied || state[core] == state[other]);
    }
    free(g);
}

int main(void)
{
    golden("../../tests/sequencer/sources.pcap", NULL, 12, 10);
    golden("../../tests/sequencer/flows.pcap", NULL, 8, 7);
    golden("../../tests/sequencer/tagged.pcap", (const u8 *)"sequencer-golden", 12, 10);
    fields();
    tags();
    distances();
    noise();
    refusals();
    last_numbers();
    return check_report();
}
