/* Helpers without an object, and the verdicts. */
#include "../context.h"
#include "../helpers/crc32c.h"
#include "../helpers/csum_diff.h"
#include "../helpers/get_prandom_u32.h"
#include "../helpers/get_smp_processor_id.h"
#include "../helpers/jiffies64.h"
#include "../helpers/ktime_get_boot_ns.h"
#include "../helpers/ktime_get_coarse_ns.h"
#include "../helpers/ktime_get_ns.h"
#include "../helpers/multiply_high.h"
#include "../helpers/redirect.h"
#include "../helpers/spin_lock.h"
#include "../helpers/spin_unlock.h"
#include "../helpers/trace_printk.h"
#include "../helpers/trace_vprintk.h"
#include "../helpers/xdp_adjust_head.h"
#include "../helpers/xdp_adjust_meta.h"
#include "../helpers/xdp_adjust_tail.h"
#include "../helpers/xdp_get_buff_len.h"
#include "../helpers/xdp_load_bytes.h"
#include "../helpers/xdp_store_bytes.h"
#include "check.h"

static void verdicts(void)
{
    struct mr_packet pkt = { .port = 2, .ports = 4 };
    static const struct {
        u64 r0;
        u32 redirect, fate, out;
    } xdp[] = {
        { 0, 0, MR_ABORTED, 0 },         { 1, 0, MR_DROP, 0 },     { 2, 0, MR_PASS, 0 },
        { 3, 0, MR_FORWARD, 2 },         { 4, 1, MR_FORWARD, 1 },  { 4, 4, MR_FORWARD, 4 },
        { 4, MR_NO_PORT, MR_FORWARD, MR_NO_PORT }, { 5, 0, MR_ABORTED, 0 },  { UINT64_MAX, 0, MR_ABORTED, 0 },
        { 0x700000002ull, 0, MR_PASS, 0 },
    };
    static const struct {
        u32 r0, fate, out;
    } handlers[] = {
        { 0x00000000, MR_DROP, 0 },    { 0x00000007, MR_DROP, 7 },    { 0x01000003, MR_FORWARD, 3 },
        { 0x01000004, MR_FORWARD, 4 }, { 0x02000000, MR_FLOOD, 0 },   { 0x02000001, MR_ABORTED, 0 },
        { 0x03000000, MR_CONSUME, 0 }, { 0x03000001, MR_ABORTED, 0 }, { 0x04000000, MR_PASS, 0 },
        { 0x04000001, MR_PASS, 1 },    { 0x05000000, MR_ABORTED, 0 }, { 0xffffffff, MR_ABORTED, 0 },
    };

    mr_packet_begin(&pkt);
    CHECK(pkt.redirect == MR_NO_PORT);
    for (u32 i = 0; i < sizeof(xdp) / sizeof(*xdp); i++) {
        pkt.redirect = xdp[i].redirect;
        mr_verdict_xdp(&pkt, xdp[i].r0);
        CHECK(pkt.fate == xdp[i].fate && pkt.out == xdp[i].out);
    }
    for (u32 i = 0; i < sizeof(handlers) / sizeof(*handlers); i++) {
        mr_verdict_handlers(&pkt, handlers[i].r0);
        CHECK(pkt.fate == handlers[i].fate && pkt.out == handlers[i].out);
    }
    CHECK(helper_redirect(3, 0, &pkt) == 4 && pkt.redirect == 2);
    CHECK(helper_redirect(1, 1, &pkt) == 0 && pkt.redirect == 2);
    CHECK(helper_redirect(0, 0, &pkt) == 4 && pkt.redirect == MR_NO_PORT);
}

static void time_and_draws(void)
{
    struct mr_packet pkt = { .time = 8000001, .cpu = 3, .number = 77 }, other = { .number = 78 };
    u64 first = helper_get_prandom_u32(5, &pkt), second = helper_get_prandom_u32(5, &pkt);
    u64 ones[32] = { 0 };

    CHECK(helper_ktime_get_ns(&pkt) == 8000001 && helper_ktime_get_boot_ns(&pkt) == 8000001);
    CHECK(helper_ktime_get_coarse_ns(&pkt) == 8000001 && helper_jiffies64(&pkt) == 2);
    CHECK(helper_get_smp_processor_id(&pkt) == 3);
    CHECK(pkt.draws == 2 && first != second && first <= UINT32_MAX);
    CHECK(helper_get_prandom_u32(5, &other) != first);
    pkt.draws = 0;
    CHECK(helper_get_prandom_u32(5, &pkt) == first);
    pkt.draws = 0;
    CHECK(helper_get_prandom_u32(6, &pkt) != first);
    for (u32 i = 0; i < 10000; i++) {
        struct mr_packet p = { .number = i };
        u64 x = helper_get_prandom_u32(1, &p);

        for (u32 bit = 0; bit < 32; bit++)
            ones[bit] += x >> bit & 1;
    }
    for (u32 bit = 0; bit < 32; bit++) /* 6 standard deviations of 50 */
        CHECK(ones[bit] > 4700 && ones[bit] < 5300);
}

static u32 crc_by_bits(u32 crc, u64 word)
{
    for (u32 i = 0; i < 64; i++, word >>= 1)
        crc = (crc >> 1) ^ ((crc ^ (u32)word) & 1 ? 0x82f63b78u : 0);
    return crc;
}

static void arithmetic(void)
{
    struct mr_packet pkt = { 0 };
    u8 zeros[32] = { 0 };
    u64 crc = 0xffffffff;

    for (u32 i = 0; i < 1000; i++) {
        u32 seed = (u32)draw(1ull << 32);
        u64 word = mr_random(i, 3), b = mr_random(i, 4);

        CHECK(helper_crc32c(seed, word, &pkt) == crc_by_bits(seed, word));
        CHECK(helper_crc32c_software(seed, word) == crc_by_bits(seed, word));
        CHECK(helper_multiply_high(word, b, &pkt) == (u64)((unsigned __int128)word * b >> 64));
    }
    /* RFC 3720 B.4: 32 bytes of zeros give aa 36 91 8a, least significant first. */
    for (u32 i = 0; i < 4; i++)
        crc = helper_crc32c(crc, mr_load64(zeros + 8 * i), &pkt);
    CHECK((u32)~crc == 0x8a9136aa);
    CHECK(helper_multiply_high(UINT64_MAX, UINT64_MAX, &pkt) == UINT64_MAX - 1);
}

/* A sum of 16-bit words, one after the other, as RFC 1071 writes it. */
static u32 sum16(const u8 *p, u32 n, u32 sum)
{
    for (u32 i = 0; i < n; i += 2) {
        sum += (u32)(p[i] | p[i + 1] << 8);
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static void checksums(void)
{
    struct mr_packet pkt = { 0 };
    u8 from[64], to[64];

    for (u32 i = 0; i < 5000; i++) {
        u32 nf = (u32)draw(17) * 4, nt = (u32)draw(17) * 4, seed = (u32)draw(65536), want;

        for (u32 j = 0; j < 64; j++) {
            from[j] = (u8)draw(256);
            to[j] = (u8)draw(256);
        }
        want = sum16(to, nt, seed) + (nf ? 0xffff - sum16(from, nf, 0) : 0);
        want = (want & 0xffff) + (want >> 16);
        CHECK(helper_csum_diff(nf ? from : NULL, nf, nt ? to : NULL, nt, seed, &pkt) % 0xffff == want % 0xffff);
        CHECK(helper_csum_diff(from, nf, to, nt, seed, &pkt) <= 0xffff);
    }
    to[4] = 0x34;
    to[5] = 0x12;
    to[6] = 0x01;
    CHECK(helper_csum_diff(NULL, 0, to + 4, 3, 0, &pkt) == 0x1235);
    CHECK(helper_csum_diff(NULL, 0, NULL, 0, 0x12345678, &pkt) == 0x68ac);
}

static struct mr_packet packet(u8 *room, u32 before, u32 length, u32 after)
{
    for (u32 i = 0; i < before + length + after; i++)
        room[i] = (u8)(i + 1);
    return (struct mr_packet){ .floor = room, .data = room + before, .meta = room + before, .bared = room + before,
                               .end = room + before + length, .ceiling = room + before + length + after };
}

static void adjusting(void)
{
    static u8 room[70000];
    struct mr_packet p = packet(room, 64, 60, 32);

    CHECK(helper_xdp_adjust_head((u64)-65, &p) == mr_errno(EINVAL) && p.data == room + 64);
    CHECK(helper_xdp_adjust_head((u64)-64, &p) == 0 && p.data == room && p.meta == room);
    CHECK(helper_xdp_adjust_head(64, &p) == 0 && p.data == room + 64);
    CHECK(helper_xdp_adjust_head(47, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_head(46, &p) == 0 && helper_xdp_get_buff_len(&p) == 14);
    CHECK(helper_xdp_adjust_head(0x100000000ull - 46, &p) == 0 && p.data == room + 64);

    CHECK(helper_xdp_adjust_meta((u64)-3, &p) == mr_errno(EACCES));
    CHECK(helper_xdp_adjust_meta((u64)-68, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_meta(4, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_meta((u64)-8, &p) == 0 && p.meta == room + 56);
    mr_store64(p.meta, 0x1122334455667788);
    CHECK(helper_xdp_adjust_head((u64)-57, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_head((u64)-56, &p) == 0 && p.meta == room && p.data == room + 8);
    CHECK(mr_load64(p.meta) == 0x1122334455667788);
    CHECK(helper_xdp_adjust_meta(8, &p) == 0 && p.meta == p.data);

    /* Headroom taken for the first time is zeros; what the packet left there itself stays. */
    p = packet(room, 64, 60, 32);
    CHECK(helper_xdp_adjust_head((u64)-8, &p) == 0 && mr_load64(p.data) == 0);
    mr_store64(p.data, 7);
    CHECK(helper_xdp_adjust_head(8, &p) == 0 && helper_xdp_adjust_head((u64)-16, &p) == 0);
    CHECK(mr_load64(p.data) == 0 && mr_load64(p.data + 8) == 7);
    CHECK(helper_xdp_adjust_meta((u64)-4, &p) == 0 && mr_load32(p.meta) == 0);

    p = packet(room, 300, 60, 32);
    CHECK(helper_xdp_adjust_meta((u64)-256, &p) == mr_errno(EACCES));
    CHECK(helper_xdp_adjust_meta((u64)-252, &p) == 0);

    p = packet(room, 64, 60, 32);
    CHECK(helper_xdp_adjust_tail(33, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_tail(32, &p) == 0 && p.end == p.ceiling && p.end[-32] == 0 && p.end[-1] == 0);
    CHECK(p.end[-33] == (u8)(64 + 60));
    CHECK(helper_xdp_adjust_tail((u64)-79, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_tail((u64)-78, &p) == 0 && helper_xdp_get_buff_len(&p) == 14);

    p = packet(room, 64, 65500, 4000);
    CHECK(helper_xdp_adjust_tail(36, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_tail(35, &p) == 0 && helper_xdp_get_buff_len(&p) == 65535);
    CHECK(helper_xdp_adjust_head((u64)-1, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_head(0x80000000, &p) == mr_errno(EINVAL));
    CHECK(helper_xdp_adjust_tail(0x80000000, &p) == mr_errno(EINVAL));
}

static void copying(void)
{
    u8 room[160], buffer[80];
    struct mr_packet p = packet(room, 32, 64, 32);

    CHECK(helper_xdp_load_bytes(60, buffer, 4, &p) == 0 && !memcmp(buffer, p.end - 4, 4));
    memset(buffer, 0xff, sizeof(buffer));
    CHECK(helper_xdp_load_bytes(60, buffer, 5, &p) == mr_errno(EINVAL) && buffer[4] == 0 && buffer[5] == 0xff);
    CHECK(helper_xdp_load_bytes(65536, buffer, 1, &p) == mr_errno(EFAULT));
    CHECK(helper_xdp_load_bytes(64, buffer, 0, &p) == 0);
    memset(buffer, 7, sizeof(buffer));
    CHECK(helper_xdp_store_bytes(0, buffer, 64, &p) == 0 && p.end[-1] == 7 && p.end[0] != 7);
    memset(buffer, 8, sizeof(buffer));
    CHECK(helper_xdp_store_bytes(1, buffer, 64, &p) == mr_errno(EINVAL) && p.data[1] == 7);
    CHECK(helper_xdp_store_bytes(0, buffer, 65536, &p) == mr_errno(EFAULT));
    CHECK(helper_trace_printk((u8 *)"a %d", 5, &p) == 4);
    CHECK(helper_trace_printk((u8 *)"a %d", 4, &p) == mr_errno(EINVAL));
    CHECK(helper_trace_printk((u8 *)"", 0, &p) == mr_errno(EINVAL));
    CHECK(helper_trace_printk((u8 *)"100%% of it", 12, &p) == 10);
    CHECK(helper_trace_printk((u8 *)"%d %d %d %d", 12, &p) == mr_errno(EINVAL));
    CHECK(helper_trace_printk((u8 *)"%d %s", 6, &p) == 5);
    /* 0x08080808 has nine digits. */
    for (u64 bytes = 0; bytes <= 128; bytes++) {
        u64 expected = bytes % 8 || bytes > 96 || !bytes ? mr_errno(EINVAL) : 2 + 9;

        CHECK(helper_trace_vprintk((u8 *)"a %d", 5, buffer, bytes, &p) == expected);
        CHECK(helper_trace_vprintk((u8 *)"a %d", 4, buffer, bytes, &p) == mr_errno(EINVAL));
        CHECK(helper_trace_vprintk((u8 *)"a %d", 5, NULL, bytes, &p) == mr_errno(EINVAL));
    }
    CHECK(helper_trace_vprintk((u8 *)"plain", 6, NULL, 0, &p) == 5);
    CHECK(helper_trace_vprintk((u8 *)"%pI4 %d", 8, buffer, 16, &p) == 7);
    CHECK(helper_trace_vprintk((u8 *)"%ls", 4, buffer, 8, &p) == mr_errno(EINVAL));
    /* A lock is not the state's to change. */
    memset(buffer, 0, 4);
    CHECK(helper_spin_lock(buffer, &p) == 0 && mr_load32(buffer) == 0);
    CHECK(helper_spin_unlock(buffer, &p) == 0 && mr_load32(buffer) == 0);
}

int main(void)
{
    verdicts();
    time_and_draws();
    arithmetic();
    checksums();
    adjusting();
    copying();
    return check_report();
}
