/* The kernel runs a program over one packet again and again (BPF_PROG_TEST_RUN); a table of flows then
 * sees one flow. This puts another flow's source address into the packet before each run of FUNCTION,
 * which is the unmodified program of NF_SOURCE. Without EMPTY, `rotate` is that plus the program; with
 * it, that alone: the difference is the program.
 *
 * Multiplying by an odd number permutes 2^16 flows, so that every flow comes once in 2^16 runs, in an
 * order that a processor cannot guess.
 */
#include NF_SOURCE

__u32 runs;

SEC("xdp")
int rotate(struct xdp_md *ctx)
{
	__u8 *data = (__u8 *)(long)ctx->data;
	__u32 flow = (runs++ * 40503) & 0xffff;

	if (data + 34 > (__u8 *)(long)ctx->data_end)
		return XDP_ABORTED;
	*(__be32 *)(data + 26) = bpf_htonl(0x0a000000 + flow);
#ifdef EMPTY
	return XDP_DROP;
#else
	return FUNCTION(ctx);
#endif
}
