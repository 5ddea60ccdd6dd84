/* Helpers that move and copy packet bytes, and csum_diff, against the kernel's: a few instructions each,
 * run by BPF_PROG_TEST_RUN on the same frame, give the same result and the same frame. Needs leave to load
 * XDP programs.
 */
#include <linux/bpf.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../helpers/csum_diff.h"
#include "../helpers/xdp_adjust_head.h"
#include "../helpers/xdp_adjust_meta.h"
#include "../helpers/xdp_adjust_tail.h"
#include "../helpers/xdp_get_buff_len.h"
#include "../helpers/xdp_load_bytes.h"
#include "../helpers/xdp_store_bytes.h"
#include "check.h"

static int bpf(int command, union bpf_attr *attr) { return (int)syscall(SYS_bpf, command, attr, sizeof(*attr)); }

/* Instructions by their fields; registers are r0 to r10. */
#define INSN(c, d, s, o, i) ((struct bpf_insn){ .code = (c), .dst_reg = (d), .src_reg = (s), .off = (o), .imm = (i) })
#define SET(d, i) INSN(BPF_ALU64 | BPF_MOV | BPF_K, d, 0, 0, i)
#define COPY(d, s) INSN(BPF_ALU64 | BPF_MOV | BPF_X, d, s, 0, 0)
#define ADD(d, i) INSN(BPF_ALU64 | BPF_ADD | BPF_K, d, 0, 0, i)
#define LOAD32(d, s, o) INSN(BPF_LDX | BPF_MEM | BPF_W, d, s, o, 0)
#define ZERO64(d, o) INSN(BPF_ST | BPF_MEM | BPF_DW, d, 0, o, 0)
#define IF_ABOVE(d, s, o) INSN(BPF_JMP | BPF_JGT | BPF_X, d, s, o, 0)
#define CALL(f) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, f)
#define EXIT() INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* What the kernel's test run gives a frame: a page, 256 bytes of headroom, of which its own record takes
 * 40, and 320 bytes at the end. */
enum { HEADROOM = 256 - 40, ROOM = 4096 - 256 - 320, LENGTH = 100 };

struct result {
    u32 r0;
    u32 length;
    u8 frame[4096];
};

/* 0, or a negative errno if the program was refused. */
static int kernel_run(const struct bpf_insn *insn, u32 count, const u8 *frame, struct result *out)
{
    static char log[4096];
    union bpf_attr attr;
    int program, error;

    memset(&attr, 0, sizeof(attr));
    attr.prog_type = BPF_PROG_TYPE_XDP;
    attr.insns = (u64)(uintptr_t)insn;
    attr.insn_cnt = count;
    attr.license = (u64)(uintptr_t)"GPL";
    attr.log_buf = (u64)(uintptr_t)log;
    attr.log_size = sizeof(log);
    attr.log_level = 1;
    program = bpf(BPF_PROG_LOAD, &attr);
    if (program < 0)
        return -errno;
    memset(&attr, 0, sizeof(attr));
    attr.test.prog_fd = (u32)program;
    attr.test.data_in = (u64)(uintptr_t)frame;
    attr.test.data_size_in = LENGTH;
    attr.test.data_out = (u64)(uintptr_t)out->frame;
    attr.test.data_size_out = sizeof(out->frame);
    attr.test.repeat = 1;
    error = bpf(BPF_PROG_TEST_RUN, &attr) ? -errno : 0;
    out->r0 = attr.test.retval;
    out->length = attr.test.data_size_out;
    close(program);
    return error;
}

static u8 room[4096];

static struct mr_packet packet(const u8 *frame)
{
    memset(room, 0, sizeof(room));
    memcpy(room + HEADROOM, frame, LENGTH);
    return (struct mr_packet){ .floor = room, .meta = room + HEADROOM, .bared = room + HEADROOM, .data = room + HEADROOM,
                               .end = room + HEADROOM + LENGTH, .ceiling = room + HEADROOM + ROOM };
}

/* `from`: the first byte of the frame whose content is defined (headroom is not). What the test run
 * gives back begins with the metadata. */
static void same(const struct result *kernel, u64 r0, struct mr_packet *pkt, u32 from)
{
    u32 length = (u32)helper_xdp_get_buff_len(pkt), meta = (u32)(pkt->data - pkt->meta);

    CHECK(kernel->r0 == (u32)r0);
    CHECK(kernel->length == meta + length);
    if (kernel->length == meta + length && from <= length)
        CHECK(!memcmp(kernel->frame + meta + from, pkt->data + from, length - from));
}

#define RUN(...)                                                                            \
    ({                                                                                      \
        const struct bpf_insn insn[] = { __VA_ARGS__ };                                     \
        kernel_run(insn, sizeof(insn) / sizeof(*insn), frame, &result) == 0;                \
    })

static void adjusting(const u8 *frame)
{
    static struct result result;

    for (s32 offset = -300; offset <= 120; offset++) {
        struct mr_packet pkt = packet(frame);
        u64 r0 = helper_xdp_adjust_head((u32)offset, &pkt);

        CHECK(RUN(SET(2, offset), CALL(BPF_FUNC_xdp_adjust_head), EXIT()));
        same(&result, r0, &pkt, offset < 0 && !r0 ? (u32)-offset : 0);

        pkt = packet(frame);
        r0 = helper_xdp_adjust_meta((u32)offset, &pkt);
        CHECK(RUN(SET(2, offset), CALL(BPF_FUNC_xdp_adjust_meta), EXIT()));
        same(&result, r0, &pkt, 0);

        /* Metadata first, then the head with it. */
        pkt = packet(frame);
        helper_xdp_adjust_meta((u32)-16, &pkt);
        r0 = helper_xdp_adjust_head((u32)offset, &pkt);
        CHECK(RUN(COPY(6, 1), SET(2, -16), CALL(BPF_FUNC_xdp_adjust_meta), COPY(1, 6), SET(2, offset),
                  CALL(BPF_FUNC_xdp_adjust_head), EXIT()));
        same(&result, r0, &pkt, offset < 0 && !r0 ? (u32)-offset : 0);
    }
    for (s32 offset = -110; offset <= ROOM; offset += offset < 20 || offset > ROOM - LENGTH - 10 ? 1 : 97) {
        struct mr_packet pkt = packet(frame);
        u64 r0 = helper_xdp_adjust_tail((u32)offset, &pkt);

        CHECK(RUN(SET(2, offset), CALL(BPF_FUNC_xdp_adjust_tail), EXIT()));
        same(&result, r0, &pkt, 0);
    }
}

static void copying(const u8 *frame)
{
    static struct result result;

    for (u32 i = 0; i < 400; i++) {
        s32 offset = (s32)(draw(10) ? draw(110) : 65530 + draw(10)), length = 1 + (s32)draw(16);
        struct mr_packet pkt = packet(frame);
        u8 zeros[16] = { 0 }, buffer[16];
        u64 r0 = helper_xdp_store_bytes((u32)offset, zeros, (u32)length, &pkt);

        CHECK(RUN(ZERO64(10, -16), ZERO64(10, -8), SET(2, offset), COPY(3, 10), ADD(3, -16), SET(4, length),
                  CALL(BPF_FUNC_xdp_store_bytes), EXIT()));
        same(&result, r0, &pkt, 0);

        pkt = packet(frame);
        r0 = helper_xdp_load_bytes((u32)offset, buffer, (u32)length, &pkt);
        CHECK(RUN(SET(2, offset), COPY(3, 10), ADD(3, -16), SET(4, length), CALL(BPF_FUNC_xdp_load_bytes), EXIT()));
        same(&result, r0, &pkt, 0);
        /* The first four bytes read are the result. */
        if (r0 || length < 4)
            continue;
        CHECK(RUN(ZERO64(10, -16), ZERO64(10, -8), SET(2, offset), COPY(3, 10), ADD(3, -16), SET(4, length),
                  CALL(BPF_FUNC_xdp_load_bytes), LOAD32(0, 10, -16), EXIT()));
        CHECK(result.r0 == mr_load32(buffer));
    }
}

static void checksums(void)
{
    static struct result result;
    u8 frame[LENGTH];

    for (u32 i = 0; i < 2000; i++) {
        s32 from = (s32)draw(12) * 4, to = (s32)draw(12) * 4, seed = (s32)draw(draw(2) ? 65536 : 1u << 31);
        struct mr_packet pkt;
        u64 ours;

        if (draw(10) == 0) {
            from += (s32)draw(4);
            to += (s32)draw(4);
        }
        /* All zeros and all ones are where 0 and 0xffff could be told apart. */
        for (u32 j = 0, plain = (u32)draw(4); j < LENGTH; j++)
            frame[j] = (u8)(plain > 1 ? draw(256) : 0xff * plain);
        if (draw(3) == 0)
            seed = (s32[]){ 0, 0xffff, -1, -65536 }[draw(4)];
        pkt = packet(frame);
        ours = helper_csum_diff(pkt.data, (u64)from, pkt.data + 48, (u64)to, (u64)seed, &pkt);
        CHECK(RUN(LOAD32(6, 1, 0), LOAD32(7, 1, 4), COPY(8, 6), ADD(8, LENGTH), SET(0, 0), IF_ABOVE(8, 7, 7), COPY(1, 6),
                  SET(2, from), COPY(3, 6), ADD(3, 48), SET(4, to), SET(5, seed), CALL(BPF_FUNC_csum_diff), EXIT()));
        CHECK(result.r0 == ours);
    }
}

int main(void)
{
    const struct bpf_insn pass[] = { SET(0, XDP_PASS), EXIT() };
    static struct result result;
    u8 frame[LENGTH];
    int error;

    for (u32 i = 0; i < LENGTH; i++)
        frame[i] = (u8)(i * 7 + 1);
    error = kernel_run(pass, 2, frame, &result);
    if (error) {
        printf("skipped: the kernel runs no XDP program: %s\n", strerror(-error));
        return check_report();
    }
    CHECK(result.r0 == XDP_PASS && result.length == LENGTH);
    adjusting(frame);
    copying(frame);
    checksums();
    return check_report();
}
