/* A wrong wall clock for one process (LD_PRELOAD). It is ahead by the number of seconds in the file that SKEW_FILE
   names, which may change at any moment. Monotonic clocks stay right. The code allocates no memory and calls no other
   library while it reads the time, because allocators read the time themselves. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const char *text;

__attribute__((constructor)) static void open_file(void) {
    const char *path = getenv("SKEW_FILE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *page = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
    if (page != MAP_FAILED) text = page;
    close(file);
}

static long skew_s(void) {
    long value = 0;
    if (!text) return 0;
    for (int i = 1; i < 16 && text[i] >= '0' && text[i] <= '9'; i++) value = value * 10 + (text[i] - '0');
    return text[0] == '-' ? -value : value;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += skew_s();
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
