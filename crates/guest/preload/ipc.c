/* Memory and semaphores of System V (sysvipc(7)), which programs share with other processes: here there are none, so
 * that they are the guest's own, and gone with it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/shm.h>

#define MOST 16
#define SEMAPHORES 32

/* What a key names. */
struct named {
    int used;
    key_t key;
    size_t size; /* bytes, or how many semaphores */
    void *memory;
    short value[SEMAPHORES];
};

static struct named memories[MOST], sets[MOST];

static int wrong(int error)
{
    errno = error;
    return -1;
}

static int get(struct named *all, key_t key, size_t size, int flags)
{
    for (int i = 0; i < MOST && key != IPC_PRIVATE; i++)
        if (all[i].used && all[i].key == key) {
            if ((flags & IPC_CREAT) && (flags & IPC_EXCL))
                return wrong(EEXIST);
            return size > all[i].size ? wrong(EINVAL) : i;
        }
    if (key != IPC_PRIVATE && !(flags & IPC_CREAT))
        return wrong(ENOENT);
    if (!size)
        return wrong(EINVAL);
    for (int i = 0; i < MOST; i++) {
        if (all[i].used)
            continue;
        memset(&all[i], 0, sizeof all[i]);
        all[i].used = 1;
        all[i].key = key;
        all[i].size = size;
        return i;
    }
    return wrong(ENOSPC);
}

static struct named *find(struct named *all, int id)
{
    return id >= 0 && id < MOST && all[id].used ? &all[id] : NULL;
}

int shmget(key_t key, size_t size, int flags)
{
    return get(memories, key, size, flags);
}

void *shmat(int id, const void *address, int flags)
{
    struct named *one = find(memories, id);

    (void)flags;
    if (!one || address) {
        errno = EINVAL;
        return (void *)-1;
    }
    if (!one->memory) {
        void *memory = mmap(NULL, one->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED)
            return (void *)-1;
        one->memory = memory;
    }
    return one->memory;
}

/* It stays until it is removed: another attachment finds it. */
int shmdt(const void *address)
{
    for (int i = 0; i < MOST; i++)
        if (memories[i].used && memories[i].memory == address)
            return 0;
    return wrong(EINVAL);
}

int shmctl(int id, int command, struct shmid_ds *told)
{
    struct named *one = find(memories, id);

    if (!one)
        return wrong(EINVAL);
    if (command == IPC_STAT && told) {
        memset(told, 0, sizeof *told);
        told->shm_segsz = one->size;
        told->shm_nattch = one->memory != NULL;
    }
    /* Who is attached goes on with the memory. */
    if (command == IPC_RMID)
        one->used = 0;
    return 0;
}

int semget(key_t key, int count, int flags)
{
    return count < 0 || count > SEMAPHORES ? wrong(EINVAL) : get(sets, key, (size_t)count, flags);
}

int semctl(int id, int number, int command, ...)
{
    struct named *one = find(sets, id);
    va_list rest;

    va_start(rest, command);
    long value = va_arg(rest, long);
    va_end(rest);
    if (!one || number < 0 || (size_t)number >= one->size)
        return wrong(EINVAL);
    switch (command) {
    case IPC_RMID: return one->used = 0;
    case GETVAL: return one->value[number];
    case SETVAL: return one->value[number] = (short)value, 0;
    case SETALL:
        if (!value)
            return wrong(EFAULT);
        memcpy(one->value, (const void *)(uintptr_t)value, one->size * sizeof *one->value);
        return 0;
    case GETALL:
        if (!value)
            return wrong(EFAULT);
        memcpy((void *)(uintptr_t)value, one->value, one->size * sizeof *one->value);
        return 0;
    }
    return wrong(EINVAL);
}

/* All or nothing. Nobody else could make an operation possible that is not. */
int semop(int id, struct sembuf *operations, size_t count)
{
    struct named *one = find(sets, id);
    short value[SEMAPHORES];

    if (!one)
        return wrong(EINVAL);
    memcpy(value, one->value, sizeof value);
    for (size_t i = 0; i < count; i++) {
        short *at = &value[operations[i].sem_num % SEMAPHORES], change = operations[i].sem_op;

        if (operations[i].sem_num >= one->size)
            return wrong(EFBIG);
        if (change ? *at + change < 0 : *at != 0)
            return wrong(EAGAIN);
        *at = (short)(*at + change);
    }
    memcpy(one->value, value, sizeof value);
    return 0;
}
