/* A program written for the preload's own interface, with one behaviour for each word it is started with. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/futex.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "port.h"

#pragma GCC diagnostic ignored "-Wuse-after-free"
#pragma GCC diagnostic ignored "-Winfinite-recursion"

__attribute__((weak)) struct mr_guest_packet *millrace_receive(int *ended);

#ifdef GO_NOTE
__asm__(".pushsection .note.go.buildid, \"a\", @note\n"
        ".long 4, 8, 4\n.asciz \"Go\\0\"\n.quad 0\n"
        ".popsection");
#endif

static volatile int zero;
static unsigned long target; /* what an address is given for */
static volatile unsigned long seen, sum;

static struct mr_guest_packet *next(void)
{
    int ended = 0;
    struct mr_guest_packet *packet;

    while (!(packet = millrace_receive(&ended)) && !ended)
        ;
    if (packet) {
        seen++;
        for (uint32_t i = 0; i < packet->length; i++)
            sum += packet->data[i];
    }
    return packet;
}

static void *all(void *unused)
{
    while (next())
        ;
    return unused;
}

/* Fails the first time only, for whoever goes on with what was before. */
static void once(void)
{
    int fd = open("failed-once", O_RDWR | O_CREAT | O_EXCL, 0600);

    if (fd >= 0)
        abort();
}

static volatile unsigned long turns;
static volatile double half;

/* A thread that never stops, with numbers in its registers that must not change. */
static void *spin(void *unused)
{
    double value = 1.5;

    for (;;) {
        value = value * 1.000001;
        if (value > 3)
            value /= 2;
        half = value;
        turns++;
        if (!(value >= 1.4 && value <= 3.1))
            abort();
        if (!(turns & 0xfff))
            usleep(100);
    }
    return unused;
}

static __thread volatile unsigned long mine;
static volatile sig_atomic_t rings;

static void ring(int signal)
{
    rings += signal == SIGALRM;
}

/* Whether all that belongs to a thread stays as it was, whichever of the host's threads runs this one. */
static int wander(void)
{
    const struct itimerval every = { { 0, 20000 }, { 0, 20000 } };
    const long number = syscall(SYS_gettid);
    const unsigned control = (_mm_getcsr() & ~_MM_ROUND_MASK) | _MM_ROUND_UP;
    sigset_t mask, now;

    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    if (signal(SIGALRM, ring) == SIG_ERR || sigprocmask(SIG_SETMASK, &mask, NULL) || setitimer(ITIMER_REAL, &every, NULL))
        return 3;
    _mm_setcsr(control);
    errno = EDOM;
    while (next()) {
        if (errno != EDOM || ++mine != seen)
            return 4;
        if (syscall(SYS_gettid) != number)
            return 5;
        if ((_mm_getcsr() & _MM_ROUND_MASK) != (control & _MM_ROUND_MASK))
            return 6;
        if (sigprocmask(SIG_BLOCK, NULL, &now) || sigismember(&now, SIGUSR1) != 1 || sigismember(&now, SIGUSR2))
            return 7;
    }
    printf("the same throughout, it %s\n", rings ? "rang" : "was silent");
    return 0;
}

static int deep(volatile char *outer)
{
    volatile char inner[4096];

    inner[0] = outer ? outer[0] : 1;
    return deep(inner) + inner[0];
}

/* Writes over the canary and the return address. */
static __attribute__((noinline)) int smash(void)
{
    char small[8];
    char *volatile at = small;

    memset(at, 1, 128);
    __asm__ volatile("" ::"r"(at) : "memory");
    return zero;
}

/* Has the kernel read what is at `target`, in every way that there is; says what came of each. */
static void ask_to_read(void)
{
    void *there = (void *)target;
    struct iovec part = { there, 8 }, *vector = there;
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    int ends[2], file = open("read-by-call", O_RDWR | O_CREAT | O_TRUNC, 0600);
    const struct iovec *volatile foreign = vector;

    if (file < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        exit(8);
    printf("write %d\n", write(file, there, 8) < 0 ? errno : 0);
    printf("pwrite %d\n", pwrite(file, there, 8, 0) < 0 ? errno : 0);
    printf("writev %d\n", writev(file, &part, 1) < 0 ? errno : 0);
    printf("writev-vector %d\n", writev(file, (const struct iovec *)foreign, 1) < 0 ? errno : 0);
    printf("send %d\n", send(ends[0], there, 8, 0) < 0 ? errno : 0);
    printf("sendmsg %d\n", sendmsg(ends[0], &message, 0) < 0 ? errno : 0);
    printf("open %d\n", open(there, O_RDONLY) < 0 ? errno : 0);
    printf("option %d\n", setsockopt(ends[0], SOL_SOCKET, SO_RCVBUF, there, 8) < 0 ? errno : 0);
}

static void fail(const char *how)
{
    if (!strcmp(how, "null"))
        *(volatile int *)(long)zero = 1;
    else if (!strcmp(how, "wild"))
        *(volatile int *)0x666000000000 = 1;
    else if (!strcmp(how, "garbage"))
        *(volatile int *)0x6567617373656d20 = 1;
    else if (!strcmp(how, "jump"))
        ((void (*)(void))0x1234)();
    else if (!strcmp(how, "poke"))
        *(volatile unsigned char *)target ^= 0xff;
    else if (!strcmp(how, "peek"))
        zero = *(volatile unsigned char *)target & 0;
    else if (!strcmp(how, "read-by-call"))
        ask_to_read();
    else if (!strcmp(how, "divide"))
        zero = 7 / zero;
    else if (!strcmp(how, "stack"))
        zero = deep(NULL);
    else if (!strcmp(how, "abort"))
        abort();
    else if (!strcmp(how, "once"))
        once();
    else if (!strcmp(how, "illegal"))
        __asm__ volatile("ud2");
    else if (!strcmp(how, "trap"))
        __asm__ volatile("int3");
    else if (!strcmp(how, "double-free")) {
        void *volatile block = malloc(100);
        free(block);
        free(block);
    } else if (!strcmp(how, "exit"))
        exit(3);
    else if (!strcmp(how, "loop"))
        for (;;)
            __asm__ volatile("" ::: "memory");
    else if (!strcmp(how, "blocked"))
        for (;;) {
            pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
            pthread_mutex_lock(&mutex);
            pthread_mutex_lock(&mutex);
        }
    else if (!strcmp(how, "masked")) {
        sigset_t all;

        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        for (;;)
            __asm__ volatile("" ::: "memory");
    } else if (!strcmp(how, "hog")) {
        for (;;) {
            void *block = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

            if (block != MAP_FAILED)
                memset(block, 1, 1 << 20);
        }
    } else if (!strcmp(how, "careless")) {
        for (;;)
            memset(malloc(1 << 20), 1, 1 << 20);
    } else if (!strcmp(how, "smash"))
        zero = smash();
    else if (!strcmp(how, "signal"))
        kill(getpid(), SIGKILL);
    else if (!strcmp(how, "memory")) {
        for (;;) {
            char *block = malloc(1 << 20);
            if (!block)
                exit(4);
            memset(block, 1, 1 << 20);
        }
    } else if (!strcmp(how, "descriptors"))
        while (open("/dev/null", O_RDONLY) >= 0)
            ;
    else if (!strcmp(how, "close-all")) {
        for (int fd = 0; fd < 1024; fd++)
            close(fd);
        closefrom(0);
    }
}

/* Memory of the host's: what GS names. */
static void *host(void)
{
    void *base;

    __asm__("rdgsbase %0" : "=r"(base));
    return base;
}

/* Reads and writes the memory of a process by system call. */
static int remote(int number, pid_t process)
{
    char local[8] = "";
    struct iovec here = {local, sizeof local}, there = {host(), sizeof local};

    return syscall(number, process, &here, 1, &there, 1, 0) < 0 ? errno : 0;
}

static ssize_t send_text(int fd, const char *text)
{
    return send(fd, text, strlen(text), 0);
}

static struct sockaddr_in internet(const char *text, unsigned short port)
{
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

    inet_pton(AF_INET, text, &to.sin_addr);
    return to;
}

static int query(int fd, unsigned long what, const char *name)
{
    struct ifreq request = { 0 };

    strcpy(request.ifr_name, name);
    return ioctl(fd, what, &request) < 0 ? errno : 0;
}

/* What leads out of a guest by sockets. */
static void ask_sockets(void)
{
    struct sockaddr_in to = internet("127.0.0.1", 9), allowed = internet("127.0.0.1", 2055);
    struct sockaddr_un unix_name = { AF_UNIX, "/run/systemd/notify" };
    int stream = socket(AF_INET, SOCK_STREAM, 0), datagram = socket(AF_INET, SOCK_DGRAM, 0);
    int raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW), local = socket(AF_UNIX, SOCK_STREAM, 0), ends[2];
    int packet = socket(AF_PACKET, SOCK_RAW, htons(3));
    char control[CMSG_SPACE(sizeof(int))] = "", byte = 0;
    struct iovec part = { &byte, 1 }, foreign = { host(), 8 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };

    printf("connect %d\n", connect(stream, (void *)&to, sizeof to) < 0 ? errno : 0);
    printf("connect-udp %d\n", connect(datagram, (void *)&to, sizeof to) < 0 ? errno : 0);
    printf("connect-allowed %d\n", connect(datagram, (void *)&allowed, sizeof allowed) < 0 ? errno : 0);
    printf("connect-unix %d\n", connect(local, (void *)&unix_name, sizeof unix_name) < 0 ? errno : 0);
    printf("send-udp %d\n", sendto(datagram, "x", 1, 0, (void *)&to, sizeof to) < 0 ? errno : 0);
    printf("send-raw %d\n", sendto(raw, "x", 1, 0, (void *)&to, sizeof to) < 0 ? errno : 0);
    printf("accept %d\n", listen(stream, 1) || accept(stream, NULL, NULL) < 0 ? errno : 0);
    printf("query-other %d\n", query(datagram, SIOCGIFADDR, "lo"));
    printf("query-set %d\n", query(datagram, SIOCSIFADDR, "@"));
    printf("query-host %d\n", ioctl(datagram, SIOCGIFADDR, host()) < 0 ? errno : 0);
    printf("generic %d\n", socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC) < 0 ? errno : 0);
    printf("ring %d\n", setsockopt(packet, SOL_PACKET, PACKET_RX_RING, &to, sizeof to) < 0 ? errno : 0);
    printf("send-ring %d\n", setsockopt(packet, SOL_PACKET, PACKET_TX_RING, &to, sizeof to) < 0 ? errno : 0);
    printf("receive-raw %d\n", syscall(SYS_recvfrom, packet, &byte, 1, 0, NULL, NULL) < 0 ? errno : 0);
    printf("pair-ip %d\n", socketpair(AF_INET, SOCK_STREAM, 0, ends) < 0 ? errno : 0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        exit(8);
    struct cmsghdr *first = CMSG_FIRSTHDR(&message);
    *first = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
    printf("pass-descriptor %d\n", sendmsg(ends[0], &message, 0) < 0 ? errno : 0);
    printf("no-socket %d\n", send(1, "x", 1, 0) < 0 ? errno : 0);
    if (write(ends[0], "x", 1) != 1)
        exit(8);
    message = (struct msghdr){ .msg_iov = &foreign, .msg_iovlen = 1 };
    printf("receive-host %d\n", recvmsg(ends[1], &message, 0) < 0 ? errno : 0);
    printf("receive-from-host %d\n", recv(ends[1], host(), 8, 0) < 0 ? errno : 0);
}

/* Structures that a call reads have to be the guest's: what is said in the host's memory is none of its words. */
static void ask_reads(void)
{
    void *host_memory = host();
    int file = open("inside.txt", O_RDWR | O_CREAT, 0600), epoll = epoll_create1(0), event = eventfd(0, 0);
    int ends[2], timer = syscall(SYS_timerfd_create, CLOCK_MONOTONIC, 0);

    if (file < 0 || epoll < 0 || event < 0 || timer < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        exit(8);
    printf("host-vector %d\n", writev(file, host_memory, 1) < 0 ? errno : 0);
    printf("host-option %d\n", setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, host_memory, 16) < 0 ? errno : 0);
    printf("host-event %d\n", syscall(SYS_epoll_ctl, epoll, EPOLL_CTL_ADD, event, host_memory) < 0 ? errno : 0);
    printf("host-timer %d\n", syscall(SYS_timerfd_settime, timer, 0, host_memory, NULL) < 0 ? errno : 0);
    printf("host-times %d\n", syscall(SYS_utimensat, file, NULL, host_memory, 0) < 0 ? errno : 0);
    printf("host-lock %d\n", syscall(SYS_fcntl, file, F_SETLK, host_memory) < 0 ? errno : 0);
    printf("host-path %d\n", syscall(SYS_open, host_memory, O_RDONLY) < 0 ? errno : 0);
    printf("host-signals %d\n", syscall(SYS_rt_sigprocmask, SIG_BLOCK, host_memory, NULL, 8) < 0 ? errno : 0);
    /* A packet lies in the host's memory, and is written from there. */
    printf("host-data %d\n", write(file, host_memory, 8) == 8 ? 0 : errno);
}

/* What is known of the interface, and a pair of sockets within the guest. */
static int network(void)
{
    struct ifreq request = { .ifr_name = "@" };
    struct ifconf all = { .ifc_len = sizeof request, .ifc_req = &request };
    struct sockaddr_in *address = (void *)&request.ifr_addr;
    struct sockaddr_ll link = { .sll_family = AF_PACKET, .sll_ifindex = (int)if_nametoindex("@0") };
    struct addrinfo *found = NULL;
    struct ifaddrs *list = NULL;
    int fd = socket(AF_INET, SOCK_DGRAM, 0), packet = socket(AF_PACKET, SOCK_RAW, htons(3)), ends[2];
    char text[64] = "";

    if (ioctl(fd, SIOCGIFADDR, &request))
        return 3;
    printf("address %s", inet_ntop(AF_INET, &address->sin_addr, text, sizeof text));
    ioctl(fd, SIOCGIFNETMASK, &request);
    printf(" mask %s", inet_ntop(AF_INET, &address->sin_addr, text, sizeof text));
    ioctl(fd, SIOCGIFHWADDR, &request);
    printf(" mac ..:%02x", (unsigned char)request.ifr_hwaddr.sa_data[5]);
    ioctl(fd, SIOCGIFMTU, &request);
    printf(" mtu %d", request.ifr_mtu);
    ioctl(fd, SIOCGIFCONF, &all);
    printf(" names %d %s index %u %u", all.ifc_len / (int)sizeof request, request.ifr_name, if_nametoindex("@"),
           if_nametoindex("eth0"));
    if (getifaddrs(&list))
        return 4;
    for (struct ifaddrs *one = list; one; one = one->ifa_next)
        printf(" %s:%d", one->ifa_name, one->ifa_addr ? one->ifa_addr->sa_family : 0);
    printf(" resolved %d", getaddrinfo("www.example.org", "80", NULL, &found) != 0);
    struct pollfd asked = { .fd = fd, .events = POLLIN | POLLOUT };
    poll(&asked, 1, 0);
    printf(" ready %d", asked.revents);
    if (socketpair(AF_UNIX, SOCK_DGRAM, 0, ends) || send(ends[0], "within", 6, 0) != 6)
        return 5;
    if (recv(ends[1], text, sizeof text, 0) != 6 || memcmp(text, "within", 6))
        return 6;
    printf(" sent %d", (int)sendto(packet, "frame on @0", 11, 0, (void *)&link, sizeof link));
    bind(packet, (void *)&(struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_ifindex = 1 }, sizeof link);
    printf(" %d\n", (int)send_text(packet, "frame on @"));
    return 0;
}

/* Flow exporters' way: a datagram for each packet, connected and not. */
static int export(const char *port)
{
    struct sockaddr_in to = internet("127.0.0.1", (unsigned short)atoi(port));
    int connected = socket(AF_INET, SOCK_DGRAM, 0), other = socket(AF_INET, SOCK_DGRAM, 0);

    if (connect(connected, (void *)&to, sizeof to) || getpeername(connected, (void *)&to, &(socklen_t){ sizeof to }))
        return 3;
    while (next())
        if (send(connected, "a", 1, 0) != 1 || sendto(other, "b", 1, 0, (void *)&to, sizeof to) != 1)
            return 4;
    to.sin_port ^= 1;
    return sendto(other, "b", 1, 0, (void *)&to, sizeof to) < 0 && errno == ENETUNREACH ? 0 : 5;
}

/* A change of user in a program with threads: the C library would wait for each of them. */
static int several_users(void)
{
    pthread_t thread;

    pthread_create(&thread, NULL, spin, NULL);
    return setgid(65534) || setuid(65534) || getuid() != 65534;
}

/* What is asked for and must be refused; prints the errors. */
static void ask(void)
{
    void *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    printf("fork %d\n", fork() < 0 ? errno : 0);
    printf("execve %d\n", execl("/bin/true", "true", NULL) < 0 ? errno : 0);
    printf("socket %d\n", socket(AF_VSOCK, SOCK_STREAM, 0) < 0 ? errno : 0);
    ask_sockets();
    ask_reads();
    printf("kill %d\n", kill(1, 0) < 0 ? errno : 0);
    printf("shadow %d\n", open("/etc/shadow", O_RDONLY) < 0 ? errno : 0);
    printf("mem %d\n", open("/proc/self/mem", O_RDWR) < 0 ? errno : 0);
    printf("outside %d\n", open("/usr/millrace-test", O_RDWR | O_CREAT, 0600) < 0 ? errno : 0);
    printf("dots %d\n", open("/usr/../etc/passwd", O_WRONLY) < 0 ? errno : 0);
    printf("inside %d\n", open("inside.txt", O_RDWR | O_CREAT, 0600) < 0 ? errno : 0);
    printf("wx %d\n", mmap(NULL, 4096, PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? errno : 0);
    printf("foreign %d\n",
           mmap((void *)0x7000000000, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED ? errno : 0);
    printf("write-host %d\n", read(open("/dev/zero", O_RDONLY), host(), 8) < 0 ? errno : 0);
    /* A wake has no second word, whatever the register of one holds; a command with one has to name the guest's. */
    printf("wake %d\n", syscall(SYS_futex, own, FUTEX_WAKE_PRIVATE, 1, NULL, host(), 0) < 0 ? errno : 0);
    printf("wake-host %d\n", syscall(SYS_futex, own, FUTEX_WAKE_OP_PRIVATE, 1, 1, host(), 0) < 0 ? errno : 0);
    printf("io_uring %d\n", syscall(SYS_io_uring_setup, 8, NULL) < 0 ? errno : 0);
    printf("pkey %d\n", syscall(SYS_pkey_mprotect, NULL, 0, 0, 0) < 0 ? errno : 0);
    printf("vm-write %d\n", remote(SYS_process_vm_writev, getpid()));
    printf("vm-read %d\n", remote(SYS_process_vm_readv, getpid()));
    printf("ptrace %d\n", syscall(SYS_ptrace, 16, 1, 0, 0) < 0 ? errno : 0);
    printf("task-mem %d\n", open("/proc/thread-self/mem", O_RDWR) < 0 ? errno : 0);
    printf("link-mem %d\n", open("link", O_RDWR) < 0 ? errno : 0);
    printf("protect-wx %d\n", mprotect(own, 4096, PROT_WRITE | PROT_EXEC) < 0 ? errno : 0);
    printf("protect-host %d\n", mprotect((void *)((uintptr_t)host() & ~4095ul), 4096, PROT_READ) < 0 ? errno : 0);
    printf("unmap-host %d\n", munmap((void *)((uintptr_t)host() & ~4095ul), 4096) < 0 ? errno : 0);
    printf("userfaultfd %d\n", syscall(SYS_userfaultfd, 0) < 0 ? errno : 0);
    printf("bpf %d\n", syscall(SYS_bpf, 0, NULL, 0) < 0 ? errno : 0);
    printf("filter %d\n", syscall(SYS_seccomp, 0, 0, NULL) < 0 ? errno : 0);
    printf("terminal %d\n", open("/dev/tty", O_RDWR) < 0 ? errno : 0);
    printf("unknown %d\n", syscall(SYS_kexec_load, 0, 0, 0, 0) < 0 ? errno : 0);
    fflush(stdout);
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "count";

    if (!millrace_receive) {
        fprintf(stderr, "not hosted\n");
        return 9;
    }
    if (count > 2)
        target = strtoul(words[2], NULL, 0);
    if (!strcmp(how, "never"))
        for (;;)
            pause();
    if (!strcmp(how, "early"))
        return 5;
    if (!strcmp(how, "early-fork"))
        return fork() < 0 ? 6 : 0;
    if (!strcmp(how, "early-exec"))
        return execl("/bin/true", "true", NULL) < 0 ? 7 : 0;
    if (!strcmp(how, "never-busy"))
        for (;;)
            __asm__ volatile("" ::: "memory");
    if (!strcmp(how, "early-null"))
        fail("null");
    if (!strcmp(how, "user")) {
        int done = setuid(65534);

        printf("user %d, then %d\n", done, (int)getuid());
    }
    if (!strcmp(how, "terminal")) {
        char byte;

        printf("a terminal %d, input %d\n", isatty(0), (int)read(0, &byte, 1));
    }
    if (!strcmp(how, "grow")) {
        while (next())
            memset(malloc(16384), 1, 16384);
        return 0;
    }
    if (!strcmp(how, "ask")) {
        /* One that forks before is refused as a whole. */
        next();
        ask();
    }
    if (!strcmp(how, "network")) {
        int wrong = network();

        if (wrong)
            return wrong;
    }
    if (!strcmp(how, "export"))
        return export(words[2]);
    if (!strcmp(how, "users") && several_users())
        return 3;
    if (!strcmp(how, "forks"))
        fork();
    if (!strcmp(how, "busy")) {
        pthread_t thread;

        pthread_create(&thread, NULL, spin, NULL);
        how = "count";
    }
    if (!strcmp(how, "files")) {
        int ends[2], event = eventfd(3, EFD_NONBLOCK), epoll = epoll_create1(0), log, copy;
        struct epoll_event one = { .events = EPOLLIN, .data.u64 = 77 }, got = { 0 };
        uint64_t count = 0;
        char text[16] = "";

        if (pipe(ends) || epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &one) || write(ends[1], "waiting", 7) != 7)
            return 8;
        log = open("files.log", O_WRONLY | O_CREAT | O_TRUNC, 0600);
        copy = dup(log);
        if (write(log, "before\n", 7) != 7)
            return 8;
        while (next())
            ;
        if (write(copy, "behind\n", 7) != 7 || lseek(log, 0, SEEK_CUR) != 14)
            return 7;
        if (epoll_wait(epoll, &got, 1, 0) != 1 || got.data.u64 != 77)
            return 6;
        if (read(ends[0], text, sizeof text) != 7 || strcmp(text, "waiting"))
            return 5;
        if (read(event, &count, sizeof count) != 8 || count != 3)
            return 4;
        printf("all as it was, process %s\n", getpid() == (int)syscall(SYS_gettid) ? "the same" : "another");
        return 0;
    }
    if (!strcmp(how, "wander")) {
        int wrong = wander();

        if (wrong)
            return wrong;
    } else if (!strcmp(how, "thread")) {
        pthread_t thread;

        pthread_create(&thread, NULL, all, NULL);
        pthread_join(thread, NULL);
    } else if (!strcmp(how, "drop")) {
        for (struct mr_guest_packet *packet; (packet = next());)
            if (seen % 2)
                packet->fate = MR_GUEST_DROP;
    } else if (!strcmp(how, "scribble")) {
        struct mr_guest_port *port = mr_guest_port();
        const volatile uint8_t *last = NULL;
        unsigned before = 0;

        for (struct mr_guest_packet *packet; (packet = next()); packet->data[0]++) {
            if (last && port->next == 1 && last >= port->packet[port->count - 1].data + 512)
                before += *last;
            if (port->next == port->count)
                last = packet->data;
        }
        printf("before %u\n", before);
    } else if (!strcmp(how, "deaf")) {
        signal(SIGINT, SIG_IGN);
        for (;;)
            next();
    } else {
        while (next())
            if (seen == 40)
                fail(how);
    }
    printf("%lu packets, sum %lu\n", seen, sum);
    return 0;
}
