#define _GNU_SOURCE
#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static int fail(int status, const char *what, const char *of)
{
	fprintf(stderr, "load: %s: %s%s%s\n", of, what, errno ? ": " : "", errno ? strerror(errno) : "");
	return status;
}

static int said(enum libbpf_print_level level, const char *format, va_list args)
{
	return level == LIBBPF_WARN ? vfprintf(stderr, format, args) : 0;
}

static int fd_of(struct bpf_object *object)
{
	return bpf_program__fd(bpf_object__next_program(object, NULL));
}

static __u64 sum(int map, __u32 key, int possible)
{
	__u64 values[possible], all = 0;

	if (bpf_map_lookup_elem(map, &key, values))
		return 0;
	for (int i = 0; i < possible; i++)
		all += values[i];
	return all;
}

