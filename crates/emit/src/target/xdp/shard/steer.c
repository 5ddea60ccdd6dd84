/* Forgets what the compiler knows of a number, so that a bound is tested in the register that is used. */
#define BARE(x) asm volatile("" : "+r"(x))

/* Where packets go: the worker that has their part of the state, by the plan's hash over their headers, as receive side scaling
 * of a NIC has it. Whoever loads this fills `ports` (interface to port), `cpus` (worker to processor) and `workers`.
 *
 * Tags of VLANs that the kernel took off before XDP are not seen, and do not enter the hash. */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, u32);
} ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WORKERS);
	__type(key, u32);
	__type(value, u32);
} cpus SEC(".maps");

/* By processor. The loader makes it as large as there are processors. */
struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(max_entries, WORKERS);
	__type(key, u32);
	__type(value, struct bpf_cpumap_val);
} workers SEC(".maps");

/* Packets by worker; the last: of interfaces without a port, which the host has. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WORKERS + 1);
	__type(key, u32);
	__type(value, u64);
} steered SEC(".maps");

enum kind {
	IPV4_TCP, IPV4_UDP, IPV4_SCTP, IPV4_FRAGMENT, IPV4,
	IPV6_TCP, IPV6_UDP, IPV6_SCTP, IPV6_FRAGMENT, IPV6,
	NOT_IP, KINDS
};

struct fields {
	u8 source[16];
	u8 destination[16];
	u8 ports[4];
	u32 kind;
	u32 protocol; /* behind the header of IP without extension headers; 0xffffffff: there is none */
	u32 upper;    /* where it begins */
};

/* Ports count as soon as they are there. */
INLINE void transport(struct xdp_md *ctx, struct fields *f, u32 at, u32 protocol, u32 first)
{
	u32 kind = protocol == 6 ? first : protocol == 17 ? first + 1 : protocol == 132 ? first + 2 : KINDS;

	if (kind != KINDS && !bpf_xdp_load_bytes(ctx, at, f->ports, 4))
		f->kind = kind;
}

/* `whole`: a first fragment counts as the packet. */
INLINE void ipv4(struct xdp_md *ctx, struct fields *f, u32 at, u32 whole)
{
	u8 header[20];
	u32 bytes, later;

	if (bpf_xdp_load_bytes(ctx, at, header, sizeof(header)))
		return;
	bytes = (header[0] & 15) * 4;
	if (header[0] >> 4 != 4 || bytes < 20)
		return;
	__builtin_memcpy(f->source, header + 12, 4);
	__builtin_memcpy(f->destination, header + 16, 4);
	later = (header[6] & 0x1f) | header[7];
	if (later || ((header[6] & 0x20) && !whole)) {
		f->kind = IPV4_FRAGMENT;
		return;
	}
	f->kind = IPV4;
	f->protocol = header[9];
	f->upper = at + bytes;
	transport(ctx, f, at + bytes, header[9], IPV4_TCP);
}

/* Most extension headers that are stepped over. */
#define EXTENSIONS 8

INLINE void ipv6(struct xdp_md *ctx, struct fields *f, u32 at)
{
	u8 header[40], next[8];
	u32 protocol;

	if (bpf_xdp_load_bytes(ctx, at, header, sizeof(header)) || header[0] >> 4 != 6)
		return;
	__builtin_memcpy(f->source, header + 8, 16);
	__builtin_memcpy(f->destination, header + 24, 16);
	f->kind = IPV6;
	protocol = header[6];
	at += sizeof(header);
	f->protocol = protocol;
	f->upper = at;
	for (u32 i = 0; i <= EXTENSIONS; i++) {
		u8 place[4];

		switch (protocol) {
		case 0: case 43: case 44: case 51: case 60: case 135: case 139: case 140:
			break;
		default:
			if (f->kind == IPV6)
				transport(ctx, f, at, protocol, IPV6_TCP);
			return;
		}
		if (i == EXTENSIONS)
			return;
		/* The offset and whether more follow count although the rest of the header is cut. */
		if (protocol == 44 && !bpf_xdp_load_bytes(ctx, at, place, 4) && (place[2] | (place[3] & 0xf9)))
			f->kind = IPV6_FRAGMENT;
		if (bpf_xdp_load_bytes(ctx, at, next, sizeof(next)))
			return;
		at += protocol == 44 ? 8 : protocol == 51 ? (next[1] + 2) * 4 : (next[1] + 1) * 8;
		protocol = next[0];
	}
}

static __attribute__((noinline)) int read_ip(struct xdp_md *ctx, struct fields *f, u32 at, u32 six, u32 whole)
{
	__builtin_memset(f, 0, sizeof(*f));
	f->kind = NOT_IP;
	f->protocol = 0xffffffffu;
	if (six)
		ipv6(ctx, f, at);
	else
		ipv4(ctx, f, at, whole);
	return 0;
}

/* The fields that decide. With `inside`, an error of ICMP counts as the answer to the packet that it carries, and the first
 * fragment of a packet of IPv4 as the packet. */
INLINE void read_fields(struct xdp_md *ctx, struct fields *f, u32 inside)
{
	struct fields carried;
	u32 at = 14, six, error;
	u8 header[8];
	u16 type = 0;

	f->kind = NOT_IP;
	for (u32 tags = 0; tags < 5; tags++) {
		if (bpf_xdp_load_bytes(ctx, at - 2, &type, sizeof(type)))
			return;
		type = bpf_ntohs(type);
		if ((type != 0x8100 && type != 0x88a8 && type != 0x9100) || tags == 4)
			break;
		at += 4;
	}
	if (type != 0x0800 && type != 0x86dd)
		return;
	six = type == 0x86dd;
	read_ip(ctx, f, at, six, inside);
	if (!inside || f->kind != (six ? IPV6 : IPV4) || f->protocol != (six ? 58 : 1))
		return;
	if (bpf_xdp_load_bytes(ctx, f->upper, header, sizeof(header)))
		return;
	type = header[0];
	error = six ? type >= 1 && type <= 4 : type == 3 || type == 4 || type == 5 || type == 11 || type == 12;
	if (!error)
		return;
	read_ip(ctx, &carried, f->upper + sizeof(header), six, 1);
	if (carried.kind == NOT_IP)
		return;
	__builtin_memcpy(f->source, carried.destination, 16);
	__builtin_memcpy(f->destination, carried.source, 16);
	__builtin_memcpy(f->ports, carried.ports + 2, 2);
	__builtin_memcpy(f->ports + 2, carried.ports, 2);
	f->kind = carried.kind;
}

/* What the bytes of a field add to the hash, which is the exclusive or of what their bits add. */
INLINE u32 part(u32 set, u32 at, const u8 *bytes, u32 count)
{
	u32 hash = 0;

	for (u32 i = 0; i < count; i++)
		for (u32 bit = 0; bit < 8; bit++)
			hash ^= ADDED[set][at + i * 8 + bit] & -(u32)(bytes[i] >> (7 - bit) & 1);
	return hash;
}

SEC("xdp")
int steer(struct xdp_md *ctx)
{
	u32 interface = ctx->ingress_ifindex, worker = WORKERS, set, hash, *port, *cpu;
	struct fields f = {};
	u64 *count;

	port = bpf_map_lookup_elem(&ports, &interface);
	if (!port) {
		count = bpf_map_lookup_elem(&steered, &worker);
		if (count)
			*count += 1;
		return XDP_PASS;
	}
	set = *port < PORTS ? *port : PORTS - 1;
	if (set >= PORTS)
		return XDP_ABORTED;
	read_fields(ctx, &f, INSIDE[set]);
	if (f.kind >= KINDS)
		return XDP_ABORTED;
	set = SETS_OF[set][f.kind];
	BARE(set);
	if (set >= SETS)
		return XDP_ABORTED;
	hash = part(set, 0, f.source, 16) ^ part(set, 128, f.destination, 16) ^ part(set, 256, f.ports, 4);
	hash &= TABLE_MASKS[set];
	BARE(hash);
	if (hash >= TABLE_MOST)
		return XDP_ABORTED;
	worker = TABLES[set][hash];
	count = bpf_map_lookup_elem(&steered, &worker);
	cpu = bpf_map_lookup_elem(&cpus, &worker);
	if (!count || !cpu)
		return XDP_ABORTED;
	*count += 1;
	return bpf_redirect_map(&workers, *cpu, XDP_ABORTED);
}

char _license[] SEC("license") = "GPL";
