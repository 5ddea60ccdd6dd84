/* DPDK's environment: initialised once a process, and what it says kept instead of printed. */
#define _GNU_SOURCE
#include "shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

/* Bytes of messages that are kept; what comes after that is lost until somebody reads. */
#define SAID 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char said[SAID];
static size_t said_length;

static ssize_t keep(void *cookie, const char *bytes, size_t count)
{
	(void)cookie;
	pthread_mutex_lock(&lock);
	size_t room = SAID - said_length;
	size_t kept = count < room ? count : room;
	memcpy(said + said_length, bytes, kept);
	said_length += kept;
	pthread_mutex_unlock(&lock);
	return (ssize_t)count;
}

/* Initialises; 0, or an errno. */
int mr_init(int argc, char **argv)
{
	const cookie_io_functions_t stream = { .write = keep };
	FILE *log = fopencookie(NULL, "w", stream);
	if (log != NULL) {
		setvbuf(log, NULL, _IOLBF, 0);
		rte_openlog_stream(log);
	}
	if (rte_eal_init(argc, argv) < 0)
		return rte_errno != 0 ? rte_errno : EINVAL;
	/* Nothing is shared with other processes, so this folder is empty. */
	const char *folder = rte_eal_get_runtime_dir();
	if (folder != NULL)
		(void)rmdir(folder);
	return 0;
}

/* Makes the calling thread one of DPDK's (an "lcore"), which gives it caches of buffers of its own. */
int mr_register(void)
{
	return rte_thread_register() < 0 ? -rte_errno : 0;
}

void mr_unregister(void)
{
	rte_thread_unregister();
}

/* Takes what was said since it was last asked: bytes, not terminated. */
size_t mr_said(char *to, size_t room)
{
	pthread_mutex_lock(&lock);
	size_t count = said_length < room ? said_length : room;
	memcpy(to, said, count);
	said_length = 0;
	pthread_mutex_unlock(&lock);
	return count;
}
