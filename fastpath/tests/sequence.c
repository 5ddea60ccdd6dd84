/* queue, stack and bloom_filter: against plain models over random operations. */
#include "../state/bloom_filter.h"
#include "../state/queue.h"
#include "../state/stack.h"
#include "check.h"

#define MOST 40
#define WIDEST 64

/* What is in it, the oldest first. */
struct model {
    u8 value[MOST][WIDEST];
    u64 used;
};

static void model_drop(struct model *m, u64 at)
{
    memmove(m->value[at], m->value[at + 1], (m->used - at - 1) * WIDEST);
    m->used--;
}

static u64 model_push(struct model *m, u64 capacity, const u8 *value, u64 flags)
{
    if (flags != 0 && flags != 2)
        return mr_errno(EINVAL);
    if (m->used == capacity) {
        if (!flags)
            return mr_errno(E2BIG);
        model_drop(m, 0);
    }
    memcpy(m->value[m->used++], value, WIDEST);
    return 0;
}

static u64 model_look(const struct model *m, u64 at, u8 *value)
{
    if (!m->used) {
        memset(value, 0, WIDEST);
        return mr_errno(ENOENT);
    }
    memcpy(value, m->value[at], WIDEST);
    return 0;
}

/* `HEAD`: which value leaves, of `n`. */
#define AGAINST_MODEL(KIND, HEAD)                                                                    \
    static void KIND##s(u64 capacity, u32 value_bytes)                                               \
    {                                                                                                \
        struct shape shape = { .value_bytes = value_bytes, .capacity = capacity };                   \
        const struct shape *s = &shape;                                                              \
        struct mr_packet pkt = { 0 };                                                                \
        struct model m = { 0 };                                                                      \
        struct KIND object;                                                                          \
                                                                                                     \
        CHECK(KIND##_create(&object, s, &check_config, NULL) == 0);                                  \
        for (u64 step = 0; step < 20000; step++) {                                                   \
            u64 n = m.used, head = n ? HEAD : 0, cursor = 0, flags = draw(3) ? draw(2) * 2 : draw(9); \
            u8 value[WIDEST] = { 0 }, ours[WIDEST] = { 0 }, theirs[WIDEST];                          \
                                                                                                     \
            for (u32 i = 0; i < value_bytes; i++)                                                    \
                value[i] = (u8)draw(256);                                                            \
            switch (draw(step / 1000 % 2 ? 4 : 6)) {                                                 \
            case 0:                                                                                  \
                memset(ours, 0xaa, value_bytes);                                                     \
                CHECK(KIND##_map_pop_elem(&object, s, ours, &pkt) == model_look(&m, head, theirs));  \
                CHECK(!memcmp(ours, theirs, value_bytes));                                           \
                if (n)                                                                               \
                    model_drop(&m, head);                                                            \
                break;                                                                               \
            case 1:                                                                                  \
                CHECK(KIND##_map_peek_elem(&object, s, ours, &pkt) == model_look(&m, head, theirs)); \
                CHECK(!memcmp(ours, theirs, value_bytes));                                           \
                CHECK(KIND##_get(&object, s, NULL, ours, 0) == (int)model_look(&m, head, theirs));   \
                CHECK(!memcmp(ours, theirs, value_bytes));                                           \
                break;                                                                               \
            case 2:                                                                                  \
                CHECK(KIND##_set(&object, s, NULL, value, 0) == (int)model_push(&m, capacity, value, 0)); \
                break;                                                                               \
            default:                                                                                 \
                CHECK(KIND##_map_push_elem(&object, s, value, flags, &pkt) ==                        \
                      model_push(&m, capacity, value, flags));                                       \
                break;                                                                               \
            }                                                                                        \
            CHECK(KIND##_count(&object, s, 0) == m.used);                                            \
            for (u64 i = 0; step % 100 == 0 && i < m.used; i++)                                      \
                CHECK(!KIND##_next(&object, s, &cursor, NULL, ours, 0) &&                            \
                      !memcmp(ours, m.value[i], value_bytes));                                       \
        }                                                                                            \
        KIND##_destroy(&object, s);                                                                  \
    }

AGAINST_MODEL(queue, 0)
AGAINST_MODEL(stack, n - 1)

/* Nothing that was put in is denied, and of what was not little is found: 2^-k of it and a little more. */
static void filters(u64 capacity, u32 rows, u32 value_bytes)
{
    struct shape shape = { .value_bytes = value_bytes, .capacity = capacity, .rows = rows };
    const struct shape *s = &shape;
    struct mr_packet pkt = { 0 };
    struct bloom_filter b, again;
    u64 wrong = 0;
    u8 *value = calloc(1, value_bytes);

    CHECK(bloom_filter_create(&b, s, &check_config, NULL) == 0);
    CHECK(bloom_filter_create(&again, s, &check_config, NULL) == 0);
    CHECK(bloom_filter_map_push_elem(&b, s, value, 1, &pkt) == mr_errno(EINVAL));
    CHECK(bloom_filter_map_push_elem(&b, s, value, 1ull << 32, &pkt) == mr_errno(EINVAL));
    CHECK(bloom_filter_map_peek_elem(&b, s, value, &pkt) == mr_errno(ENOENT));
    for (u64 i = 0; i < 2 * capacity; i++) {
        /* The last byte tells values apart too. */
        memcpy(value, &i, value_bytes < 8 ? value_bytes : 8);
        value[value_bytes - 1] ^= (u8)(i * 37);
        if (i < capacity) {
            if (i % 2)
                CHECK(bloom_filter_map_push_elem(&b, s, value, 0, &pkt) == 0);
            else
                CHECK(bloom_filter_set(&b, s, NULL, value, 0) == 0);
            CHECK(bloom_filter_map_push_elem(&again, s, value, 0, &pkt) == 0);
            CHECK(bloom_filter_map_peek_elem(&b, s, value, &pkt) == 0);
        } else {
            wrong += bloom_filter_map_peek_elem(&b, s, value, &pkt) == 0;
        }
    }
    CHECK(!memcmp(b.word, again.word, bloom_filter_bits(s) / 8));
    if (value_bytes >= 4)
        CHECK(wrong <= capacity / (1ull << rows) * 3 / 2 + 20);
    bloom_filter_destroy(&b, s);
    bloom_filter_destroy(&again, s);
    free(value);
}

static void refusals(void)
{
    static const struct shape none = { .value_bytes = 4, .rows = 5 };
    static const struct shape empty = { .capacity = 4, .rows = 5 };
    static const struct shape absurd = { .value_bytes = 4, .capacity = 1ull << 40, .rows = 5 };
    static const struct shape rows = { .value_bytes = 4, .capacity = 4, .rows = 16 };
    struct bloom_filter b;
    struct queue q;
    struct stack t;

    CHECK(queue_create(&q, &none, &check_config, NULL) == -EINVAL);
    CHECK(stack_create(&t, &empty, &check_config, NULL) == -EINVAL);
    CHECK(queue_create(&q, &absurd, &check_config, NULL) == -E2BIG);
    CHECK(bloom_filter_create(&b, &none, &check_config, NULL) == -EINVAL);
    CHECK(bloom_filter_create(&b, &empty, &check_config, NULL) == -EINVAL);
    CHECK(bloom_filter_create(&b, &absurd, &check_config, NULL) == -E2BIG);
    CHECK(bloom_filter_create(&b, &rows, &check_config, NULL) == -EINVAL);
    CHECK(bloom_filter_bits(&absurd) == 1ull << 32);
}

int main(void)
{
    static const u32 bytes[] = { 1, 3, 8, 11, 40, 64 };

    for (u32 i = 0; i < sizeof(bytes) / sizeof(*bytes); i++) {
        queues(1, bytes[i]);
        queues(2 + i, bytes[i]);
        queues(MOST - 1, bytes[i]);
        stacks(1, bytes[i]);
        stacks(3 + i, bytes[i]);
        stacks(MOST - 1, bytes[i]);
        filters(1, 1 + i, bytes[i]);
        filters(100, 15, bytes[i]);
        filters(3000, 2 + i, bytes[i]);
    }
    filters(1000, 5, 4099);
    refusals();
    return check_report();
}
