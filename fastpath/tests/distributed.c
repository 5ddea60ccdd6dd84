/* distributed: parts of numbers. The headers on fibers, in every order with up to three preemptions: a read has whole packets of
 * others, all of those that had ended a staleness ago, and its own; planted faults are found. Then many workers one after the
 * other, against numbers kept apart. */
#include "explore.h"

static int planted;
#define PARTS_FAULT(n) (planted == (n))
#include "../state/distributed.h"

#define CORES 3u
#define PACKETS 3u
#define STALENESS 10u

/* One member is added to twice a packet, one is the largest, one is bits. */
static const struct shape shape = { .key_bytes = 4, .value_bytes = 24, .capacity = 1, .staleness = STALENESS, .max = 2, .or = 4 };
static struct parts parts;
static struct distributed cores[CORES];
static u64 ended[CORES], begun[CORES];
static int wrong;

static void begin(u32 workers)
{
    struct mr_config config = check_config;

    config.workers = workers;
    CHECK(parts_create(&parts, &shape, &config) == 0);
    for (u32 w = 0; w < workers; w++) {
        CHECK(distributed_create(&cores[w], &shape, &config, NULL) == 0);
        CHECK(distributed_join(&cores[w], &shape, &parts, w) == 0);
        ended[w] = begun[w] = 0;
    }
}

static void end(u32 workers)
{
    for (u32 w = 0; w < workers; w++)
        distributed_destroy(&cores[w], &shape);
    parts_destroy(&parts, &shape);
}

/* A packet of a worker, with its burst: 1 and 1 more, its number, its bit. */
static void change(u32 w, u64 time)
{
    struct mr_packet pkt = { .time = time, .number = begun[w] };

    begun[w]++;
    distributed_distributed_add(&cores[w], &shape, 0, 1, &pkt);
    distributed_distributed_max(&cores[w], &shape, 1, begun[w], &pkt);
    distributed_distributed_add(&cores[w], &shape, 0, 1, &pkt);
    distributed_distributed_or(&cores[w], &shape, 2, 1ull << (8 * w + begun[w]), &pkt);
    distributed_publish(&cores[w], &shape);
    ended[w]++;
}

/* A read at a time, where others' packets had ended so many times when the first packet within the staleness began. */
static void look(u32 w, u32 workers, u64 time, const u64 *since)
{
    struct mr_packet pkt = { .time = time };
    u64 all = distributed_distributed_read(&cores[w], &shape, 0, &pkt);
    u64 most = distributed_distributed_read(&cores[w], &shape, 1, &pkt);
    u64 bits = distributed_distributed_read(&cores[w], &shape, 2, &pkt);
    u64 sum = 0, largest = 0;

    for (u32 o = 0; o < workers; o++) {
        u64 mine = bits >> 8 * o & 0xff, n = (u64)__builtin_popcountll(mine);

        /* Packets of a core are there from the first one on. */
        wrong |= mine != (1ull << n) * 2 - 2;
        wrong |= n < since[o] || n > begun[o];
        sum += n;
        largest = largest > n ? largest : n;
    }
    wrong |= all != 2 * sum || most != largest;
}

static void pair(u32 fiber)
{
    u64 since[CORES];

    if (fiber == 0) {
        for (u32 i = 0; i < PACKETS; i++)
            change(0, i);
        return;
    }
    memcpy(since, ended, sizeof since);
    look(1, 2, 100, since);
    change(1, 100);
    since[1]++;
    /* Of the same time, and as old as may be. */
    look(1, 2, 100, since);
    look(1, 2, 100 + STALENESS, since);
    memcpy(since, ended, sizeof since);
    look(1, 2, 101 + STALENESS, since);
    /* Time goes back. */
    memcpy(since, ended, sizeof since);
    look(1, 2, 5, since);
}

static void three(u32 fiber)
{
    u64 since[CORES];

    change(fiber, 1);
    memcpy(since, ended, sizeof since);
    look(fiber, 3, 50, since);
    change(fiber, 50);
}

static int violates(void (*body)(u32), u32 workers, u32 bound)
{
    explore_first(bound);
    do {
        begin(workers);
        wrong = 0;
        explore_run(workers, body);
        wrong |= explore.stuck;
        end(workers);
    } while (!wrong && explore_next());
    return wrong;
}

/* A core that stands still in the middle of a publication keeps no reader waiting. */
static void dead(void)
{
    u64 since[CORES] = { 2, 0 };

    begin(2);
    change(0, 1);
    change(0, 2);
    /* What a core that dies there leaves: a slot of the next version, half written. */
    cores[0].line->slots[(3 & 1) * 3] = 77;
    wrong = 0;
    look(1, 2, 100, since);
    CHECK(!wrong);
    end(2);
}

/* Bursts of several packets: what is older than the staleness is published before the burst ends, and half a packet never. */
static void bursts(void)
{
    struct mr_packet pkt = { .time = 100, .number = 1 }, other = { .time = 1000 };

    begin(2);
    distributed_distributed_add(&cores[0], &shape, 0, 5, &pkt);
    pkt.time += STALENESS + 1;
    distributed_distributed_add(&cores[0], &shape, 0, 5, &pkt);
    CHECK(distributed_distributed_read(&cores[1], &shape, 0, &other) == 0);
    pkt.number++;
    distributed_distributed_add(&cores[0], &shape, 0, 7, &pkt);
    other.time += STALENESS + 1;
    CHECK(distributed_distributed_read(&cores[1], &shape, 0, &other) == 10);
    distributed_publish(&cores[0], &shape);
    CHECK(distributed_distributed_read(&cores[1], &shape, 0, &other) == 10);
    other.time += STALENESS + 1;
    CHECK(distributed_distributed_read(&cores[1], &shape, 0, &other) == 17);
    /* No member. */
    CHECK(distributed_distributed_read(&cores[1], &shape, 3, &other) == 0);
    distributed_distributed_add(&cores[0], &shape, 3, 1, &other);
    distributed_distributed_max(&cores[0], &shape, ~0ull, 1, &other);
    end(2);
}

/* One copy: all is seen at once. */
static void one_copy(void)
{
    struct shape one = shape;
    struct mr_packet pkt = { 0 };
    struct distributed d;
    u64 model[3] = { 0 };
    u8 key[4] = { 0 }, value[24];
    u64 cursor = 0;

    one.staleness = 0;
    CHECK(distributed_create(&d, &one, &check_config, NULL) == 0);
    for (u32 step = 0; step < 2000; step++) {
        u64 n = draw(1000);

        distributed_distributed_add(&d, &one, 0, n, &pkt);
        distributed_distributed_max(&d, &one, 1, n * step, &pkt);
        distributed_distributed_or(&d, &one, 2, 1ull << n % 64, &pkt);
        model[0] += n;
        model[1] = model[1] > n * step ? model[1] : n * step;
        model[2] |= 1ull << n % 64;
        for (u64 i = 0; i < 3; i++)
            CHECK(distributed_distributed_read(&d, &one, i, &pkt) == model[i]);
    }
    CHECK(distributed_get(&d, &one, key, value, 0) == 0 && !memcmp(value, model, 24));
    CHECK(distributed_next(&d, &one, &cursor, key, value, 0) == 0);
    CHECK(distributed_next(&d, &one, &cursor, key, value, 0) == -ENOENT);
    memset(value, 1, 24);
    CHECK(distributed_set(&d, &one, key, value, 0) == 0 && distributed_remove(&d, &one, key, 0) == -EINVAL);
    CHECK(distributed_distributed_read(&d, &one, 0, &pkt) == 0x0101010101010101ull);
    key[0] = 1;
    CHECK(distributed_get(&d, &one, key, value, 0) == -ENOENT && distributed_set(&d, &one, key, value, 0) == -E2BIG);
    distributed_destroy(&d, &one);
    one.value_bytes = 12;
    CHECK(distributed_create(&d, &one, &check_config, NULL) == -EINVAL);
}

int main(void)
{
    static const struct {
        int fault;
        const char *name;
    } faults[] = { { PARTS_FAULT_TORN, "torn" },
                   { PARTS_FAULT_LOST, "lost" },
                   { PARTS_FAULT_TWICE, "counted twice" },
                   { PARTS_FAULT_OLD, "too old" } };

    CHECK(!violates(pair, 2, MR_GAP ? 2 : 3));
    CHECK(!violates(three, 3, MR_GAP ? 1 : 2));
    printf("%llu orders\n", (unsigned long long)explore.runs);
    for (u32 f = 0; f < sizeof faults / sizeof *faults; f++) {
        planted = faults[f].fault;
        CHECK(violates(pair, 2, 3) || violates(three, 3, 2));
        planted = 0;
        printf("fault %s: looked for\n", faults[f].name);
    }
    dead();
    bursts();
    one_copy();
    return check_report();
}
