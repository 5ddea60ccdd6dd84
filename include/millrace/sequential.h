/* A function is written for one packet at a time; how it runs on many cores is worked out later, from
 * what it reads and writes. A lock, an atomic operation or a thread of its own would hide that. Using
 * one of these names is an error at the author's line.
 */
#ifndef MILLRACE_SEQUENTIAL_H
#define MILLRACE_SEQUENTIAL_H

#define MILLRACE_REFUSED \
	_Pragma("GCC error \"an NF sees one packet at a time: no locks, atomics or threads; read and write plainly, the plan keeps packets in order\"")

#define _Atomic MILLRACE_REFUSED
#define _Thread_local MILLRACE_REFUSED
#define __thread MILLRACE_REFUSED
#define __sync_fetch_and_add MILLRACE_REFUSED
#define __sync_fetch_and_sub MILLRACE_REFUSED
#define __sync_fetch_and_or MILLRACE_REFUSED
#define __sync_fetch_and_and MILLRACE_REFUSED
#define __sync_fetch_and_xor MILLRACE_REFUSED
#define __sync_add_and_fetch MILLRACE_REFUSED
#define __sync_sub_and_fetch MILLRACE_REFUSED
#define __sync_lock_test_and_set MILLRACE_REFUSED
#define __sync_lock_release MILLRACE_REFUSED
#define __sync_val_compare_and_swap MILLRACE_REFUSED
#define __sync_bool_compare_and_swap MILLRACE_REFUSED
#define __sync_synchronize MILLRACE_REFUSED
#define __atomic_fetch_add MILLRACE_REFUSED
#define __atomic_fetch_sub MILLRACE_REFUSED
#define __atomic_fetch_or MILLRACE_REFUSED
#define __atomic_fetch_and MILLRACE_REFUSED
#define __atomic_add_fetch MILLRACE_REFUSED
#define __atomic_load_n MILLRACE_REFUSED
#define __atomic_store_n MILLRACE_REFUSED
#define __atomic_exchange_n MILLRACE_REFUSED
#define __atomic_compare_exchange_n MILLRACE_REFUSED
#define __atomic_thread_fence MILLRACE_REFUSED
#define bpf_spin_lock MILLRACE_REFUSED
#define bpf_spin_unlock MILLRACE_REFUSED
#define pthread_create MILLRACE_REFUSED
#define pthread_mutex_lock MILLRACE_REFUSED
#define pthread_mutex_unlock MILLRACE_REFUSED

#endif
