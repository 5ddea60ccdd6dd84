/* Runs frames through the kernel's steering without interfaces (BPF_PROG_TEST_RUN).
 *
 * steer OBJECT: in: u32 frames; per frame u32 length, bytes. Out: per frame u32: the worker that it was steered to, 0xffffffff: not
 * run. The interface of a test is port 0. Exit status 77: the kernel or the rights do not allow it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#define MOST 65

static void take(void *to, size_t bytes)
{
	if (bytes && fread(to, bytes, 1, stdin) != 1)
		exit(3);
}

static __u64 counted(int map, __u32 worker, int possible)
{
	__u64 values[possible], all = 0;

	if (bpf_map_lookup_elem(map, &worker, values))
		exit(4);
	for (int i = 0; i < possible; i++)
		all += values[i];
	return all;
}

int main(int argc, char **argv)
{
	struct bpf_object *object = argc == 2 ? bpf_object__open_file(argv[1], NULL) : NULL;
	int possible = libbpf_num_possible_cpus(), steered, cpus, program;
	static unsigned char in[65536], out[65536];
	__u32 frames, interface = 1, zero = 0, workers;
	__u64 before[MOST];
	struct bpf_map *map;

	if (!object)
		return 6;
	bpf_program__set_type(bpf_object__next_program(object, NULL), BPF_PROG_TYPE_XDP);
	map = bpf_object__find_map_by_name(object, "cpus");
	workers = map ? bpf_map__max_entries(map) : MOST;
	if (workers >= MOST)
		return 6;
	if (bpf_object__load(object))
		return errno == EPERM || errno == ENOSYS ? 77 : 5;
	program = bpf_program__fd(bpf_object__next_program(object, NULL));
	steered = bpf_object__find_map_fd_by_name(object, "steered");
	cpus = bpf_map__fd(map);
	for (__u32 i = 0; i < workers; i++) {
		before[i] = 0;
		bpf_map_update_elem(cpus, &i, &i, BPF_ANY);
	}
	bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "ports"), &interface, &zero, BPF_ANY);
	take(&frames, 4);
	for (__u32 i = 0; i < frames; i++) {
		__u32 length, found = 0xffffffffu;
		LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in, .data_out = out, .data_size_out = sizeof(out), .repeat = 1);

		take(&length, 4);
		if (length > 9000)
			return 7;
		take(in, length);
		opts.data_size_in = length;
		if (!bpf_prog_test_run_opts(program, &opts))
			for (__u32 worker = 0; worker < workers; worker++) {
				__u64 now = counted(steered, worker, possible);

				if (now != before[worker])
					found = worker;
				before[worker] = now;
			}
		if (fwrite(&found, 4, 1, stdout) != 1)
			return 8;
	}
	return 0;
}
