/* Loads a function that is replicated over cores, with its sequencer, and attaches them:
 *
 *	cc -O2 -Wall -o load load.c -lbpf
 *	./load sequencer.o replica.o eth0 [eth1 ...]
 *
 * The first interface is port 0. Each replica is a copy of replica.o with maps of its own, behind a veth of its own (mrNc0 to
 * mrNr0, by this process' number N), which the sequencer sends packets to. What the function sends back (XDP_TX) leaves by the
 * interface by which it came; what it passes comes to the host at the replica's interface, mrNr0 and so on. A heartbeat goes to all
 * replicas when one is due. On SIGINT or SIGTERM, or once replicas have stopped, it takes all of that away and prints what
 * became of packets, as one JSON document. Exit status: 0 done, 1 replicas have stopped, 2 wrong use, 3 the
 * kernel does not allow it, with the reason. Linux 5.18, libbpf 1.0 and ip (iproute2). */

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <stdarg.h>
#include <sys/socket.h>

#define MOST 64
/* ns between two looks at what is due, at most. */
#define LOOK 20000000

/* As `struct sequencer` begins. */
struct progress {
	__u32 lock, turn, index, beats;
	__u64 sequence, row_time;
};

static const char *const SEQUENCED[] = { "sent", "heartbeats", "without_port", "due", "early", "ended", "no_room" };
static const char *const REPLICATED[] = {
	"packets", "heartbeats", "replayed", "late", "lost", "stopped", "other",
	"short", "foreign", "shaped", "flags", "number", "index", "slot", "times",
	"recovered", "gone", "waiting", "contradicted"
};
#define COUNT_LOST 4
#define COUNT_CONTRADICTED 18

static struct bpf_object *open_one(const char *path)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program = object ? bpf_object__next_program(object, NULL) : NULL;

	if (!program)
		return NULL;
	bpf_program__set_type(program, BPF_PROG_TYPE_XDP);
	return bpf_object__load(object) ? NULL : object;
}

/* What replicas have in common. */
static const char *const SHARED[] = { "replica_log", "replica_group" };

/* Replica `number`, which has these maps of the first one. */
static struct bpf_object *open_replica(const char *path, struct bpf_object *first, __u32 number)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program = object ? bpf_object__next_program(object, NULL) : NULL;
	__u32 zero = 0;

	if (!program)
		return NULL;
	bpf_program__set_type(program, BPF_PROG_TYPE_XDP);
	for (int i = 0; first && i < 2; i++) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, SHARED[i]);

		if (!map || bpf_map__reuse_fd(map, bpf_object__find_map_fd_by_name(first, SHARED[i])))
			return NULL;
	}
	if (bpf_object__load(object))
		return NULL;
	return bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "replica_number"), &zero, &number, BPF_ANY) ? NULL : object;
}

/* Runs a command of numbers alone; whether it failed. */
static int does(const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	return system(line);
}

/* A pair of interfaces with room for the prefix, on which nobody else speaks; whether there is none. */
static int pair(int of, const char *a, const char *b, int number)
{
	if (does("ip link add mr%d%s%d mtu %d type veth peer name mr%d%s%d mtu %d", of, a, number, 1500 + PREFIX, of, b, number,
		 1500 + PREFIX))
		return -1;
	/* A host without IPv6 does not know this, and does not speak by it. */
	does("ip link set mr%d%s%d addrgenmode none 2>/dev/null; ip link set mr%d%s%d addrgenmode none 2>/dev/null", of, a, number,
	     of, b, number);
	return does("ip link set mr%d%s%d arp off up && ip link set mr%d%s%d arp off up", of, a, number, of, b, number);
}

static int interface(int of, const char *side, int number)
{
	char name[IF_NAMESIZE];

	snprintf(name, sizeof(name), "mr%d%s%d", of, side, number);
	return if_nametoindex(name);
}

static __u64 one(int map, __u32 key)
{
	__u64 value = 0;

	bpf_map_lookup_elem(map, &key, &value);
	return value;
}

/* How many frames make the heartbeat that is due, or what is missing of one; `wait`: ns until the next look. */
static __u32 due(int state, size_t bytes, long *wait)
{
	union {
		struct progress at;
		char all[4096];
	} read;
	struct timespec clock;
	__u64 now, next;
	__u32 zero = 0;

	*wait = LOOK;
	if (bytes > sizeof(read) || bpf_map_lookup_elem(state, &zero, &read) || !read.at.sequence)
		return 0;
	if (read.at.beats)
		return read.at.beats;
	clock_gettime(CLOCK_MONOTONIC, &clock);
	now = clock.tv_sec * 1000000000ull + clock.tv_nsec;
	next = read.at.row_time + PERIOD;
	if (now >= next)
		return CORES;
	if (next - now < LOOK)
		*wait = next - now;
	return 0;
}

int main(int argc, char **argv)
{
	int at = 3, made = 0, status = 0, of = getpid() % 100000, interfaces[MOST], attached = 0, beats = -1, state, ports, cores;
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct bpf_object *sequencer, *replicas[CORES];
	struct timespec wait = { .tv_nsec = LOOK };
	__u32 tick = 0xffffffffu, key, from;
	unsigned char frame[ETH_HLEN] = { 0 };
	struct bpf_map *map;
	size_t bytes;
	sigset_t signals;

	libbpf_set_print(said);
	if (argc < 4)
		return fail(2, "sequencer.o replica.o INTERFACE ...", "usage");
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	sequencer = open_one(argv[1]);
	if (!sequencer)
		return fail(3, "the kernel does not take it", argv[1]);
	map = bpf_object__find_map_by_name(sequencer, "sequencer_state");
	cores = bpf_object__find_map_fd_by_name(sequencer, "cores");
	ports = bpf_object__find_map_fd_by_name(sequencer, "ports");
	if (!map || cores < 0 || ports < 0)
		return fail(2, "this is no sequencer.o of this function", argv[1]);
	state = bpf_map__fd(map);
	bytes = bpf_map__value_size(map);
	for (; made < CORES && !status; made++) {
		key = made;
		replicas[made] = open_replica(argv[2], made ? replicas[0] : NULL, made);
		if (!replicas[made]) {
			status = fail(3, "the kernel does not take it", argv[2]);
			break;
		}
		if (pair(of, "c", "r", made) || bpf_xdp_attach(interface(of, "r", made), fd_of(replicas[made]), 0, NULL)) {
			status = fail(3, "there is no interface for a replica", argv[2]);
			continue;
		}
		from = interface(of, "c", made);
		if (bpf_map_update_elem(cores, &key, &from, BPF_ANY))
			status = fail(3, "it cannot send to a replica", argv[1]);
	}
	if (!status) {
		if (pair(of, "t", "b", 0)) {
			status = fail(3, "there is no interface for heartbeats", argv[1]);
		} else {
			from = interface(of, "b", 0);
			to.sll_ifindex = interface(of, "t", 0);
			beats = socket(AF_PACKET, SOCK_RAW, 0);
			if (beats < 0 || bind(beats, (struct sockaddr *)&to, sizeof(to)) ||
			    bpf_map_update_elem(ports, &from, &tick, BPF_ANY) ||
			    bpf_xdp_attach(from, fd_of(sequencer), 0, NULL))
				status = fail(3, "heartbeats cannot be sent", argv[1]);
		}
	}
	for (; at < argc && attached < MOST && !status; at++) {
		__u32 port = attached;

		from = if_nametoindex(argv[at]);
		if (!from) {
			status = fail(2, "there is no such interface", argv[at]);
			break;
		}
		for (int i = 0; i < CORES; i++)
			if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(replicas[i], "back"), &port, &from, BPF_ANY))
				status = fail(3, "a replica cannot send there", argv[at]);
		if (!status && (bpf_map_update_elem(ports, &from, &port, BPF_ANY) ||
				bpf_xdp_attach(from, fd_of(sequencer), XDP_FLAGS_UPDATE_IF_NOEXIST, NULL)))
			status = fail(3, "it cannot be attached", argv[at]);
		if (!status)
			interfaces[attached++] = from;
	}
	if (!status) {
		printf("{\"replicas\": %d, \"ports\": %d}\n", CORES, attached);
		fflush(stdout);
		while (sigtimedwait(&signals, NULL, &wait) < 0 && !status) {
			for (__u32 n = due(state, bytes, &wait.tv_nsec); n; n--)
				if (send(beats, frame, sizeof(frame), 0) < 0)
					break;
			for (int i = 0; i < CORES && !status; i++) {
				int counts = bpf_object__find_map_fd_by_name(replicas[i], "replica_counts");

				errno = 0;
				if (one(counts, COUNT_LOST))
					status = fail(1, "a replica has missed more rows than logs hold, and all have stopped", argv[2]);
				else if (one(counts, COUNT_CONTRADICTED))
					status = fail(1, "there is a second sequencer, or somebody forges rows: all replicas have stopped", argv[2]);
			}
		}
	}
	for (int i = 0; i < attached; i++)
		bpf_xdp_detach(interfaces[i], 0, NULL);
	if (attached) {
		int possible = libbpf_num_possible_cpus();

		/* What was on its way has arrived. */
		usleep(100000);
		printf("{\"replicas\": [");
		for (int i = 0; i < CORES; i++) {
			int counts = bpf_object__find_map_fd_by_name(replicas[i], "replica_counts");

			printf("%s{\"replica\": %d", i ? ", " : "", i);
			for (__u32 n = 0; n < sizeof(REPLICATED) / sizeof(*REPLICATED); n++)
				printf(", \"%s\": %llu", REPLICATED[n], one(counts, n));
			printf("}");
		}
		printf("]");
		for (__u32 n = 0; n < sizeof(SEQUENCED) / sizeof(*SEQUENCED); n++)
			printf(", \"%s\": %llu", SEQUENCED[n],
			       sum(bpf_object__find_map_fd_by_name(sequencer, "counts"), n, possible));
		printf("}\n");
	}
	for (int i = 0; i < made; i++)
		does("ip link del mr%dc%d 2>/dev/null", of, i);
	does("ip link del mr%dt0 2>/dev/null", of);
	return status;
}
