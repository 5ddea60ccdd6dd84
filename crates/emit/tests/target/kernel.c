/* Runs frames through XDP programs in the kernel, without interfaces (BPF_PROG_TEST_RUN).
 *
 * kernel MODE COPIES OBJECT: loads the object so many times; MODE is sequencer, replica or plain. In: u32 frames; per frame u32
 * copy, u64 time, u32 tick, u32 length, bytes. Out: per frame u32 verdict, u32 length, bytes; 0xffffffff: not run; behind all frames
 * of replicas per copy 19 u64 counts. Replicas share a log. The sequencer
 * is told the time by its map, and that the interface of a test is port 0 or a tick. Exit status 77: the kernel or the
 * rights do not allow it; what was wrong is on standard error.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define MOST 64
#define COUNTS 19

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

static char said[1 << 20];

static int keep(enum libbpf_print_level level, const char *format, va_list args)
{
	size_t have = strlen(said);

	if (level != LIBBPF_DEBUG)
		vsnprintf(said + have, sizeof(said) - have, format, args);
	return 0;
}

static void refused(int error)
{
	size_t length = strlen(said);

	fprintf(stderr, "%s: %s", strerror(error), said + (length > 6000 ? length - 6000 : 0));
	exit(error == EPERM || error == ENOSYS ? 77 : 5);
}

int main(int argc, char **argv)
{
	int copies = argc == 4 ? atoi(argv[2]) : 0, program[MOST], counts[MOST], given = -1, ports = -1;
	int replicas = argc == 4 && !strcmp(argv[1], "replica");
	struct bpf_object *head = NULL;
	int sequencer = argc == 4 && !strcmp(argv[1], "sequencer");
	static unsigned char in[65536], out[65536];
	__u32 frames, zero = 0, one = 1;

	if (copies < 1 || copies > MOST)
		return 6;
	libbpf_set_print(keep);
	for (int i = 0; i < copies; i++) {
		struct bpf_object *object = bpf_object__open_file(argv[3], NULL);
		struct bpf_program *first;

		if (!object)
			refused(errno);
		first = bpf_object__next_program(object, NULL);
		if (!first)
			return 7;
		bpf_program__set_type(first, BPF_PROG_TYPE_XDP);
		for (int n = 0; replicas && head && n < 2; n++)
			if (bpf_map__reuse_fd(bpf_object__find_map_by_name(object, SHARED[n]), bpf_object__find_map_fd_by_name(head, SHARED[n])))
				return 9;
		if (bpf_object__load(object))
			refused(errno);
		if (replicas) {
			__u32 number = i;

			head = head ? head : object;
			counts[i] = bpf_object__find_map_fd_by_name(object, "replica_counts");
			if (bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "replica_number"), &zero, &number, BPF_ANY))
				return 9;
		}
		program[i] = bpf_program__fd(first);
		if (sequencer) {
			given = bpf_object__find_map_fd_by_name(object, "given_time");
			ports = bpf_object__find_map_fd_by_name(object, "ports");
		}
	}
	take(&frames, 4);
	for (__u32 i = 0; i < frames; i++) {
		__u32 copy, tick, length, none = 0xffffffffu, port;
		__u64 time;
		LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = in, .data_out = out, .data_size_out = sizeof(out), .repeat = 1);

		take(&copy, 4);
		take(&time, 8);
		take(&tick, 4);
		take(&length, 4);
		if (copy >= (__u32)copies || length > sizeof(in))
			return 8;
		take(in, length);
		options.data_size_in = length;
		port = tick ? 0xffffffffu : 0;
		/* The interface of a test is the first, the loopback's. */
		if (sequencer && (bpf_map_update_elem(given, &zero, &time, BPF_ANY) || bpf_map_update_elem(ports, &one, &port, BPF_ANY)))
			refused(errno);
		if (bpf_prog_test_run_opts(program[copy], &options)) {
			give(&none, 4);
			options.data_size_out = 0;
			fprintf(stderr, "frame %u: %s\n", i, strerror(errno));
		} else {
			give(&options.retval, 4);
		}
		give(&options.data_size_out, 4);
		give(out, options.data_size_out);
	}
	for (int i = 0; replicas && i < copies; i++)
		for (__u32 what = 0; what < COUNTS; what++) {
			__u64 n = 0;

			bpf_map_lookup_elem(counts[i], &what, &n);
			give(&n, 8);
		}
	return 0;
}
