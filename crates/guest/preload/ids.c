/* Changes of user and group: the C library signals all other threads and waits until each has made the call. A guest's
 * identity is that of all its threads, and its signals run elsewhere, so one call is all.
 */
#define _GNU_SOURCE
#include <grp.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT ((uid_t)-1)

int setuid(uid_t user)
{
    return (int)syscall(SYS_setuid, user);
}

int setgid(gid_t group)
{
    return (int)syscall(SYS_setgid, group);
}

int setresuid(uid_t real, uid_t effective, uid_t saved)
{
    return (int)syscall(SYS_setresuid, real, effective, saved);
}

int setresgid(gid_t real, gid_t effective, gid_t saved)
{
    return (int)syscall(SYS_setresgid, real, effective, saved);
}

int setreuid(uid_t real, uid_t effective)
{
    return (int)syscall(SYS_setreuid, real, effective);
}

int setregid(gid_t real, gid_t effective)
{
    return (int)syscall(SYS_setregid, real, effective);
}

int seteuid(uid_t user)
{
    return setresuid(KEPT, user, KEPT);
}

int setegid(gid_t group)
{
    return setresgid(KEPT, group, KEPT);
}

int setgroups(size_t count, const gid_t *groups)
{
    return (int)syscall(SYS_setgroups, count, groups);
}
