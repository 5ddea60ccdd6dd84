/* The first process of the machine that tests/protection.rs boots: runs the test that it is given, tells its status
 * on the console, and switches the machine off.
 */
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    int status = -1;

    mount("proc", "/proc", "proc", 0, NULL);
    mount("tmp", "/tmp", "tmpfs", 0, NULL);
    pid_t child = fork();
    if (child == 0) {
        char *words[] = {"/test", "--ignored", "--exact", "protection::inside", "--nocapture", NULL};
        char *environment[] = {"PATH=/programs", "RUST_BACKTRACE=1", "MILLRACE_PROGRAMS=/programs", NULL};

        execve(words[0], words, environment);
        perror(words[0]);
        _exit(127);
    }
    waitpid(child, &status, 0);
    printf("machine: status %d\n", status);
    fflush(stdout);
    reboot(RB_AUTOBOOT);
    return 0;
}
