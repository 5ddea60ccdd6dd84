/* SYN cookies: what was made is taken, for as long as it is good, and nothing else; and SipHash against its
 * authors' test vector (Aumasson, Bernstein: SipHash, appendix A: key 00..0f, of 8 bytes 00..07).
 */
#include "../helpers/tcp_raw_check_syncookie_ipv4.h"
#include "../helpers/tcp_raw_check_syncookie_ipv6.h"
#include "../helpers/tcp_raw_gen_syncookie_ipv4.h"
#include "../helpers/tcp_raw_gen_syncookie_ipv6.h"
#include "check.h"

#define MINUTE 60000000000ull

struct call {
    u8 ip[40], tcp[60];
    u32 length;
    int six;
};

static u64 make(struct call *c, u64 seed, struct mr_packet *pkt)
{
    return c->six ? helper_tcp_raw_gen_syncookie_ipv6(c->ip, c->tcp, c->length, seed, pkt)
                  : helper_tcp_raw_gen_syncookie_ipv4(c->ip, c->tcp, c->length, seed, pkt);
}

static u64 take(struct call *c, u64 seed, struct mr_packet *pkt)
{
    return c->six ? helper_tcp_raw_check_syncookie_ipv6(c->ip, c->tcp, seed, pkt)
                  : helper_tcp_raw_check_syncookie_ipv4(c->ip, c->tcp, seed, pkt);
}

/* The ACK that answers the cookie of a SYN. */
static struct call answer(const struct call *syn, u32 cookie)
{
    struct call ack = *syn;

    mr_store32(ack.tcp + 4, __builtin_bswap32(__builtin_bswap32(mr_load32(syn->tcp + 4)) + 1));
    mr_store32(ack.tcp + 8, __builtin_bswap32(cookie + 1));
    return ack;
}

static struct call draw_syn(void)
{
    struct call c = { .six = (int)draw(2), .length = 20 + 4 * (u32)draw(11) };

    for (u32 i = 0; i < sizeof(c.ip); i++)
        c.ip[i] = (u8)draw(256);
    for (u32 i = 0; i < sizeof(c.tcp); i++)
        c.tcp[i] = (u8)draw(i < 20 ? 256 : 6);
    c.tcp[12] = (u8)(c.length / 4 << 4);
    return c;
}

static void sizes(void)
{
    static const struct {
        u8 option[12];
        u32 four, six;
    } cases[] = {
        { { 0 }, 536, 1220 },
        { { 2, 4, 5, 180 }, 1460, 1440 },             /* 1460 */
        { { 1, 1, 2, 4, 5, 179 }, 1440, 1440 },       /* 1459, after two fillers */
        { { 3, 3, 7, 2, 4, 0x23, 0x28 }, 1460, 8940 }, /* 9000, after the window scale */
        { { 2, 4, 0, 1 }, 536, 1220 },
        { { 2, 4, 0, 0 }, 536, 1220 },
        { { 2, 3, 5, 180 }, 536, 1220 },
        { { 0, 2, 4, 5, 180 }, 536, 1220 }, /* the list ends before it */
        { { 8, 200, 2, 4, 5, 180 }, 536, 1220 },
        { { 8, 0, 2, 4, 5, 180 }, 536, 1220 },
        { { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2 }, 536, 1220 },
    };
    struct mr_packet pkt = { .time = 5 * MINUTE };

    for (u32 i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct call c = { .length = 32 };

        c.tcp[12] = 8 << 4;
        memcpy(c.tcp + 20, cases[i].option, 12);
        CHECK(make(&c, 1, &pkt) >> 32 == cases[i].four);
        c.six = 1;
        CHECK(make(&c, 1, &pkt) >> 32 == cases[i].six);
        c.length = 28;
        CHECK(make(&c, 1, &pkt) == mr_errno(EINVAL));
        c.length = 0;
        CHECK(make(&c, 1, &pkt) == mr_errno(EINVAL));
    }
}

int main(void)
{
    const u64 word[] = { 0x0706050403020100ull };

    CHECK(syncookie_siphash(0x0706050403020100ull, 0x0f0e0d0c0b0a0908ull, word, 1) == 0x93f5f5799a932462ull);
    sizes();
    for (u32 round = 0, forged = 0; round < 20000; round++) {
        struct call syn = draw_syn(), ack;
        struct mr_packet pkt = { .time = draw(400 * MINUTE) };
        u64 now = pkt.time, cookie = make(&syn, 7, &pkt);

        CHECK((s64)cookie > 0);
        ack = answer(&syn, (u32)cookie);
        CHECK(take(&ack, 7, &pkt) == 0);
        pkt.time = (now / MINUTE + 1) * MINUTE + draw(MINUTE);
        CHECK(take(&ack, 7, &pkt) == 0);
        pkt.time = (now / MINUTE + 2 + draw(250)) * MINUTE;
        CHECK(take(&ack, 7, &pkt) == mr_errno(EACCES));
        pkt.time = now;
        /* One bit of what the code covers: address, ports, either number. */
        ack.ip[(ack.six ? 8 : 12) + draw(ack.six ? 32 : 8)] ^= (u8)(1u << draw(8));
        forged += take(&ack, 7, &pkt) == 0;
        ack = answer(&syn, (u32)cookie);
        ack.tcp[draw(12)] ^= (u8)(1u << draw(8));
        forged += take(&ack, 7, &pkt) == 0;
        ack = answer(&syn, (u32)cookie);
        forged += take(&ack, 8, &pkt) == 0;
        /* Of 2^24 codes four are good in two minutes of 256; only the lowest bits of a number may hit one. */
        if (round == 19999)
            CHECK(forged < 1000);
    }
    return check_report();
}
