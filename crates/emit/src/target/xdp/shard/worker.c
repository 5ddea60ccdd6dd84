
/* What the function made of packets, by its verdict; the last: another number than a verdict. One processor counts. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 6);
	__type(key, u32);
	__type(value, u64);
} verdicts SEC(".maps");

/* A worker: the function, on the processor to which its packets were steered. */
SEC("xdp")
int worker(struct xdp_md *ctx)
{
	u32 what;
	u64 *count;
	int verdict;

	/* The program is called as it is written, by its own convention. */
	asm volatile("r1 = %[ctx]; call " PROGRAM "; %[verdict] = r0"
		     : [verdict] "=r"(verdict)
		     : [ctx] "r"(ctx)
		     : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
	what = verdict >= 0 && verdict <= 4 ? verdict : 5;
	count = bpf_map_lookup_elem(&verdicts, &what);
	if (count)
		*count += 1;
	/* Behind a cpumap the kernel knows no XDP_TX. */
	return verdict == XDP_TX ? bpf_redirect(ctx->ingress_ifindex, 0) : verdict;
}

char _license[] SEC("license") = LICENSE;
