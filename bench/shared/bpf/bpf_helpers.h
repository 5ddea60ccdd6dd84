/* The helpers that the five programs of bench/shared call, over tables that threads of one process share: what a person would
 * write who parallelises such a program by hand. Found before libbpf's header of this name. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SEC(name) __attribute__((section(name), used))
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __uint(name, value) int(*name)[value]
#define __type(name, value) typeof(value) *name

/* A value of `table`, or NULL; with locks, its entry's lock is held until the packet ends. */
void *shared_lookup(const void *key, size_t key_bytes);
int shared_update(const void *key, size_t key_bytes, const void *value, size_t value_bytes, uint64_t flags);
int shared_delete(const void *key, size_t key_bytes);
uint64_t shared_now(void);

#define bpf_map_lookup_elem(map, k) ((typeof((map)->value))shared_lookup(k, sizeof(*(map)->key)))
#define bpf_map_update_elem(map, k, v, flags) shared_update(k, sizeof(*(map)->key), v, sizeof(*(map)->value), flags)
#define bpf_map_delete_elem(map, k) shared_delete(k, sizeof(*(map)->key))
#define bpf_ktime_get_ns() shared_now()

/* Nobody reads reports here. */
#define bpf_ringbuf_reserve(map, size, flags) ((void *)NULL)
#define bpf_ringbuf_submit(record, flags) ((void)(record))
