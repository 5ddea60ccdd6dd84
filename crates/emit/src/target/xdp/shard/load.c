/* Loads a function that is sharded over processors, and attaches it to interfaces:
 *
 *	cc -O2 -Wall -o load load.c -lbpf
 *	./load steer.o worker.o [--cpus 2,3] eth0 [eth1 ...]
 *
 * The first interface is port 0. Each worker is a copy of worker.o with maps of its own, on a processor of its own. On SIGINT or
 * SIGTERM it takes the function off the interfaces and prints what became of packets, as one JSON document; records of ring
 * buffers are lines before that. Exit status: 0 done,
 * 2 wrong use, 3 the kernel does not allow it, with the reason. Linux 5.18 and libbpf 1.0. */

#define MOST 64
/* Packets that wait for a processor before others are dropped. */
#define QUEUE 2048

struct reader {
	__u32 worker;
	const char *map;
};

static struct bpf_object *open_one(const char *path, int behind)
{
	struct bpf_object *object = bpf_object__open_file(path, NULL);
	struct bpf_program *program = object ? bpf_object__next_program(object, NULL) : NULL;
	struct bpf_map *map;

	if (!program)
		return NULL;
	bpf_program__set_type(program, BPF_PROG_TYPE_XDP);
	bpf_program__set_expected_attach_type(program, behind ? BPF_XDP_CPUMAP : BPF_XDP);
	map = bpf_object__find_map_by_name(object, "workers");
	if (map && bpf_map__set_max_entries(map, libbpf_num_possible_cpus()))
		return NULL;
	return bpf_object__load(object) ? NULL : object;
}

/* A record of a ring buffer, as a line. */
static int record(void *context, void *data, size_t bytes)
{
	const struct reader *reader = context;
	const unsigned char *byte = data;

	printf("{\"worker\": %u, \"map\": \"%s\", \"record\": \"", reader->worker, reader->map);
	for (size_t i = 0; i < bytes; i++)
		printf("%02x", byte[i]);
	printf("\"}\n");
	return 0;
}

/* Lets records of a worker's ring buffers be read. */
static int reads(struct ring_buffer **all, struct bpf_object *worker, __u32 number)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, worker) {
		struct reader *reader;

		if (bpf_map__type(map) != BPF_MAP_TYPE_RINGBUF)
			continue;
		reader = malloc(sizeof(*reader));
		if (!reader)
			return -1;
		*reader = (struct reader){ number, bpf_map__name(map) };
		if (!*all)
			*all = ring_buffer__new(bpf_map__fd(map), record, reader, NULL);
		else if (ring_buffer__add(*all, bpf_map__fd(map), record, reader))
			return -1;
		if (!*all)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const char *const names[6] = { "aborted", "dropped", "passed", "sent", "redirected", "unknown" };
	int at = 3, count = 0, cpus[MOST], interfaces[MOST], attached = 0, status = 0;
	int possible = libbpf_num_possible_cpus(), online = sysconf(_SC_NPROCESSORS_ONLN);
	struct bpf_object *steer, *workers[MOST];
	const struct timespec often = { .tv_nsec = 20000000 };
	struct ring_buffer *records = NULL;
	struct bpf_map *map;
	sigset_t signals;
	__u32 total;

	libbpf_set_print(said);
	if (argc < 4)
		return fail(2, "steer.o worker.o [--cpus N,N] INTERFACE ...", "usage");
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	steer = open_one(argv[1], 0);
	if (!steer)
		return fail(3, "the kernel does not take it", argv[1]);
	map = bpf_object__find_map_by_name(steer, "cpus");
	total = map ? bpf_map__max_entries(map) : 0;
	if (!total || total > MOST)
		return fail(2, "this is no steer.o of this function", argv[1]);
	for (__u32 i = 0; i < total; i++)
		cpus[i] = i;
	if (!strcmp(argv[3], "--cpus") && argc > 5) {
		char *word = strtok(argv[4], ",");

		for (; word && count < MOST; word = strtok(NULL, ","))
			cpus[count++] = atoi(word);
		if ((__u32)count != total)
			return fail(2, "name one processor for each worker", "--cpus");
		at = 5;
	}
	for (__u32 i = 0; i < total; i++) {
		for (__u32 other = 0; other < i; other++)
			if (cpus[other] == cpus[i])
				return fail(2, "two workers cannot share a processor", "--cpus");
		if (cpus[i] < 0 || cpus[i] >= possible || (at == 3 && cpus[i] >= online)) {
			errno = 0;
			return fail(2, "there are fewer processors than workers: emit it for fewer --cores", "cpus");
		}
	}
	for (__u32 i = 0; i < total; i++) {
		struct bpf_cpumap_val value = { .qsize = QUEUE };
		__u32 cpu = cpus[i];

		workers[i] = open_one(argv[2], 1);
		if (!workers[i])
			return fail(3, "the kernel does not take it", argv[2]);
		value.bpf_prog.fd = fd_of(workers[i]);
		if (bpf_map_update_elem(bpf_map__fd(map), &i, &cpu, BPF_ANY) ||
		    bpf_map_update_elem(bpf_object__find_map_fd_by_name(steer, "workers"), &cpu, &value, BPF_ANY))
			return fail(3, "a worker cannot be put on a processor", argv[2]);
		if (reads(&records, workers[i], i))
			return fail(3, "its records cannot be read", argv[2]);
	}
	for (; at < argc && attached < MOST; at++) {
		__u32 interface = if_nametoindex(argv[at]), port = attached;

		if (!interface) {
			status = fail(2, "there is no such interface", argv[at]);
			break;
		}
		if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(steer, "ports"), &interface, &port, BPF_ANY) ||
		    bpf_xdp_attach(interface, fd_of(steer), XDP_FLAGS_UPDATE_IF_NOEXIST, NULL)) {
			status = fail(3, "it cannot be attached", argv[at]);
			break;
		}
		interfaces[attached++] = interface;
	}
	if (!status) {
		printf("{\"workers\": %u, \"ports\": %d}\n", total, attached);
		fflush(stdout);
		while (sigtimedwait(&signals, NULL, &often) < 0)
			if (records && ring_buffer__consume(records) > 0)
				fflush(stdout);
	}
	for (int i = 0; i < attached; i++)
		bpf_xdp_detach(interfaces[i], 0, NULL);
	if (status)
		return status;
	/* What was on its way has arrived. */
	usleep(100000);
	if (records)
		ring_buffer__consume(records);
	printf("{\"workers\": [");
	for (__u32 i = 0; i < total; i++) {
		int counts = bpf_object__find_map_fd_by_name(workers[i], "verdicts");

		printf("%s{\"worker\": %u, \"cpu\": %d, \"packets\": %llu", i ? ", " : "", i, cpus[i],
		       sum(bpf_object__find_map_fd_by_name(steer, "steered"), i, possible));
		for (__u32 what = 0; what < 6; what++) {
			__u64 n = 0;

			bpf_map_lookup_elem(counts, &what, &n);
			printf(", \"%s\": %llu", names[what], n);
		}
		printf("}");
	}
	printf("], \"without_port\": %llu}\n", sum(bpf_object__find_map_fd_by_name(steer, "steered"), total, possible));
	return 0;
}
