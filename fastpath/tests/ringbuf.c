/* ringbuf against a queue of lengths and first bytes. */
#include "../helpers/ringbuf_discard.h"
#include "../helpers/ringbuf_submit.h"
#include "../state/ringbuf.h"
#include "check.h"

enum { QUEUE = 4096 };

struct queue {
    u32 length[QUEUE];
    u8 byte[QUEUE];
    int discarded[QUEUE];
    u64 head, tail; /* of records */
    u64 taken;      /* bytes */
    u64 drained, errors;
};

static void record(void *context, u32 object, const u8 *bytes, u64 length)
{
    struct queue *q = context;
    u64 at;

    while (q->discarded[q->head % QUEUE])
        q->taken -= ringbuf_step(q->length[q->head++ % QUEUE]);
    at = q->head++ % QUEUE;
    q->taken -= ringbuf_step(q->length[at]);
    q->errors += object != 3 || length != q->length[at];
    for (u64 i = 0; i < length; i++)
        q->errors += bytes[i] != (u8)(q->byte[at] + i);
    q->drained++;
}

static void random_operations(void)
{
    static const struct shape s = { .capacity = 4096 };
    struct mr_packet pkt = { 0 };
    static struct queue q;
    struct ringbuf r;
    u8 bytes[5000], *p;
    u64 expected = 0;

    CHECK(ringbuf_create(&r, &s, &check_config, NULL) == 0);
    for (u64 step = 0; step < 20000; step++) {
        u64 length = draw(10) ? draw(200) : draw(4200), at = q.tail % QUEUE;
        int fits = q.taken + ringbuf_step(length) < 4096;
        u8 first = (u8)step;

        for (u64 i = 0; i < length; i++)
            bytes[i] = (u8)(first + i);
        q.length[at] = (u32)length;
        q.byte[at] = first;
        q.discarded[at] = 0;
        switch (draw(4)) {
        case 0:
        case 1:
            CHECK(ringbuf_ringbuf_output(&r, &s, bytes, length, draw(4), &pkt) == (fits ? 0 : mr_errno(EAGAIN)));
            break;
        case 2:
            p = ringbuf_ringbuf_reserve(&r, &s, length, 0, &pkt);
            CHECK((p != NULL) == fits);
            if (!p)
                break;
            CHECK(((uintptr_t)p & 7) == 0);
            for (u64 i = 0; i < length; i++)
                CHECK(p[i] == 0);
            memcpy(p, bytes, length);
            q.discarded[at] = !draw(3);
            if (q.discarded[at])
                helper_ringbuf_discard(p, 0, &pkt);
            else
                helper_ringbuf_submit(p, 0, &pkt);
            break;
        case 3:
            fits = 0;
            if (draw(4))
                break;
            CHECK(ringbuf_count(&r, &s, 0) == q.tail - q.head);
            ringbuf_drain(&r, &s, 3, record, &q);
            while (q.head != q.tail) {
                CHECK(q.discarded[q.head % QUEUE]);
                q.taken -= ringbuf_step(q.length[q.head++ % QUEUE]);
            }
            CHECK(q.taken == 0 && q.drained == expected);
            break;
        }
        if (fits) {
            q.taken += ringbuf_step(length);
            q.tail++;
            expected += !q.discarded[at];
        }
        CHECK(ringbuf_ringbuf_query(&r, &s, 0, &pkt) == q.taken);
    }
    CHECK(q.errors == 0 && q.drained > 1000);
    ringbuf_destroy(&r, &s);
}

static void contract(void)
{
    static const struct shape s = { .capacity = 8192 };
    struct shape odd = { .capacity = 6144 };
    struct mr_packet pkt = { 0 };
    struct ringbuf r;
    struct queue q = { 0 };
    u8 byte = 1, *first, *second;

    CHECK(ringbuf_create(&r, &s, &check_config, NULL) == 0);
    CHECK(ringbuf_ringbuf_output(&r, &s, &byte, 1, 4, &pkt) == mr_errno(EINVAL));
    CHECK(ringbuf_ringbuf_output(&r, &s, &byte, 1u << 30, 0, &pkt) == mr_errno(E2BIG));
    CHECK(!ringbuf_ringbuf_reserve(&r, &s, 8, 1, &pkt));
    CHECK(!ringbuf_ringbuf_reserve(&r, &s, UINT64_MAX, 0, &pkt));
    CHECK(!ringbuf_ringbuf_reserve(&r, &s, 8192 - 8, 0, &pkt));
    /* What no ring has room for was not refused because this one is full. */
    CHECK(ringbuf_full(&r, &s, 0) == 0);

    /* One that is not given back holds up the one behind it. */
    first = ringbuf_ringbuf_reserve(&r, &s, 1, 0, &pkt);
    second = ringbuf_ringbuf_reserve(&r, &s, 1, 0, &pkt);
    CHECK(first && second);
    *first = *second = 0;
    q.length[0] = q.length[1] = 1;
    q.tail = 2;
    helper_ringbuf_submit(second, 0, &pkt);
    ringbuf_drain(&r, &s, 3, record, &q);
    CHECK(q.drained == 0);
    helper_ringbuf_submit(first, 0, &pkt);
    ringbuf_drain(&r, &s, 3, record, &q);
    CHECK(q.drained == 2 && q.errors == 0);
    CHECK(ringbuf_ringbuf_query(&r, &s, 1, &pkt) == 8192);
    CHECK(ringbuf_ringbuf_query(&r, &s, 2, &pkt) == 32 && ringbuf_ringbuf_query(&r, &s, 3, &pkt) == 32);
    CHECK(ringbuf_ringbuf_query(&r, &s, 9, &pkt) == 0);
    CHECK(ringbuf_ringbuf_reserve(&r, &s, 8192 - 16, 0, &pkt));
    CHECK(ringbuf_full(&r, &s, 0) == 0);
    CHECK(!ringbuf_ringbuf_reserve(&r, &s, 1, 0, &pkt));
    CHECK(ringbuf_ringbuf_output(&r, &s, &byte, 1, 0, &pkt) == mr_errno(EAGAIN));
    CHECK(!ringbuf_ringbuf_reserve(&r, &s, 8192 - 8, 0, &pkt));
    CHECK(ringbuf_full(&r, &s, 0) == 2);
    ringbuf_destroy(&r, &s);
    CHECK(ringbuf_create(&r, &odd, &check_config, NULL) == -EINVAL);
    odd.capacity = 0;
    CHECK(ringbuf_create(&r, &odd, &check_config, NULL) == -EINVAL);
}

int main(void)
{
    random_operations();
    contract();
    return check_report();
}
