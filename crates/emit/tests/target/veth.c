/* A sequencer and its replicas on interfaces of a namespace of their own, which ends with this process.
 *
 * veth CORES SEQUENCER REPLICA PASS: packets go into `in0`, whose peer runs the sequencer; it sends them to c0, c1 …, whose
 * peers run the replicas; what these answer (XDP_TX) comes back to c0, c1 …. Heartbeats are sent into `tick0`. With the fifth word
 * `carriers` frames are carriers, and go to the replicas themselves. Input and output as kernel.c: of each frame verdict 3 and its
 * bytes where one came back, else 1 and none; counts behind them. Exit status 77: not possible here.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define MOST 16
/* Counts of the replica that say that a frame has been judged: all but those of rows. */
#define COUNTS 19
#define REPLAYED 2
#define RECOVERED 15
#define GONE 16

static const char *const SHARED[] = { "replica_log", "replica_group" };

static void take(void *to, size_t bytes)
{
	if (bytes && fread(to, bytes, 1, stdin) != 1)
		exit(3);
}

static void give(const void *from, size_t bytes)
{
	if (bytes && fwrite(from, bytes, 1, stdout) != 1)
		exit(4);
}

static void impossible(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(77);
}

static int quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

/* With the maps that it shares of `first`, where there is one. */
static struct bpf_object *load_with(const char *path, int interface, struct bpf_object *first)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program = object ? bpf_object__next_program(object, NULL) : NULL;

	if (!program)
		exit(5);
	bpf_program__set_type(program, BPF_PROG_TYPE_XDP);
	for (int n = 0; first && n < 2; n++)
		if (bpf_map__reuse_fd(bpf_object__find_map_by_name(object, SHARED[n]), bpf_object__find_map_fd_by_name(first, SHARED[n])))
			exit(9);
	if (bpf_object__load(object))
		impossible(path);
	if (bpf_xdp_attach(interface, bpf_program__fd(program), 0, NULL))
		impossible("attach");
	return object;
}

static struct bpf_object *load(const char *path, int interface)
{
	return load_with(path, interface, NULL);
}

static int pair(const char *a, const char *b)
{
	char line[256];

	snprintf(line, sizeof(line), "ip link add %s type veth peer name %s && ip link set %s up && ip link set %s up", a, b, a, b);
	return system(line);
}

static int listening(const char *name)
{
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = if_nametoindex(name) };
	int on = 1, fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));

	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)))
		impossible("socket");
	setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on));
	return fd;
}

static __u64 judged(const int *counts, int cores)
{
	__u64 all = 0;

	for (int i = 0; i < cores; i++)
		for (__u32 what = 0; what < COUNTS; what++) {
			__u64 n = 0;

			if (what != REPLAYED && what != RECOVERED && what != GONE && !bpf_map_lookup_elem(counts[i], &what, &n))
				all += n;
		}
	return all;
}

int main(int argc, char **argv)
{
	int cores = argc == 5 || argc == 6 ? atoi(argv[1]) : 0, counts[MOST], out[MOST], in, tick, given, ports, map;
	static unsigned char frame[65536];
	struct bpf_object *object, *first = NULL;
	__u32 frames, zero = 0, interface, port;
	int fd;

	if (cores < 1 || cores > MOST)
		return 6;
	libbpf_set_print(quiet);
	if (unshare(CLONE_NEWNET))
		impossible("unshare");
	/* Nobody else speaks here. */
	fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);
	if (fd >= 0) {
		if (write(fd, "1", 1) != 1)
			return 6;
		close(fd);
	}
	if (pair("in0", "in1") || pair("tick0", "tick1"))
		impossible("ip link add");
	object = load(argv[2], if_nametoindex("in1"));
	if (bpf_xdp_attach(if_nametoindex("tick1"), bpf_program__fd(bpf_object__next_program(object, NULL)), 0, NULL))
		impossible("attach");
	given = bpf_object__find_map_fd_by_name(object, "given_time");
	ports = bpf_object__find_map_fd_by_name(object, "ports");
	map = bpf_object__find_map_fd_by_name(object, "cores");
	interface = if_nametoindex("in1");
	port = 0;
	bpf_map_update_elem(ports, &interface, &port, BPF_ANY);
	interface = if_nametoindex("tick1");
	port = 0xffffffffu;
	bpf_map_update_elem(ports, &interface, &port, BPF_ANY);
	for (int i = 0; i < cores; i++) {
		char near[16], far[16];

		snprintf(near, sizeof(near), "c%d", i);
		snprintf(far, sizeof(far), "r%d", i);
		if (pair(near, far))
			impossible("ip link add");
		object = load_with(argv[3], if_nametoindex(far), i ? first : NULL);
		first = i ? first : object;
		counts[i] = bpf_object__find_map_fd_by_name(object, "replica_counts");
		bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "replica_number"), &zero, &i, BPF_ANY);
		/* What runs XDP takes packets of XDP. */
		load(argv[4], if_nametoindex(near));
		interface = if_nametoindex(near);
		if (bpf_map_update_elem(map, &i, &interface, BPF_ANY))
			return 10;
		out[i] = listening(near);
	}
	in = listening("in0");
	tick = listening("tick0");
	take(&frames, 4);
	for (__u32 n = 0; n < frames; n++) {
		__u32 copy, ticks, length, verdict = 1;
		struct pollfd one;
		ssize_t got = 0;
		__u64 time, before = judged(counts, cores);

		take(&copy, 4);
		take(&time, 8);
		take(&ticks, 4);
		take(&length, 4);
		if (copy >= (__u32)cores || length > sizeof(frame))
			return 8;
		take(frame, length);
		if (bpf_map_update_elem(given, &zero, &time, BPF_ANY) || send(argc == 6 ? out[copy] : ticks ? tick : in, frame, length, 0) != (ssize_t)length)
			return 9;
		for (int tries = 0; tries < 20000 && judged(counts, cores) == before; tries++)
			usleep(100);
		if (judged(counts, cores) != before + 1)
			fprintf(stderr, "frame %u: no replica has it\n", n);
		one = (struct pollfd){ .fd = out[copy], .events = POLLIN };
		if (poll(&one, 1, 10) == 1 && (got = recv(out[copy], frame, sizeof(frame), MSG_DONTWAIT)) > 0)
			verdict = 3;
		length = got > 0 ? got : 0;
		give(&verdict, 4);
		give(&length, 4);
		give(frame, length);
	}
	for (int i = 0; i < cores; i++)
		for (__u32 what = 0; what < COUNTS; what++) {
			__u64 n = 0;

			bpf_map_lookup_elem(counts[i], &what, &n);
			give(&n, 8);
		}
	return 0;
}
