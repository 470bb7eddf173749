// A wall clock that can be set, for one process: preloaded, it takes the place of the C library's. SLUICE_FAULTS_CLOCK
// names a file of four numbers of 64 bits, which other processes change while this one runs: a count that is odd during
// a change, nanoseconds by which the clock is ahead, its drift in millionths, and since when it drifts, on
// CLOCK_MONOTONIC. Monotonic clocks stay as they are.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static _Atomic int64_t *set;

__attribute__((constructor)) static void begin(void) {
	const char *path = getenv("SLUICE_FAULTS_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0) return;
	void *mem = mmap(0, 32, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (mem != MAP_FAILED) set = mem;
}

static int64_t read_clock(clockid_t id) {
	struct timespec t;
	syscall(SYS_clock_gettime, id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t wall(void) {
	if (!set) return read_clock(CLOCK_REALTIME);
	for (;;) {
		int64_t count = set[0], ahead = set[1], drift = set[2], since = set[3];
		if (count % 2 || count != set[0]) continue;
		if (drift) ahead += (read_clock(CLOCK_MONOTONIC) - since) / 1000000 * drift;
		return read_clock(CLOCK_REALTIME) + ahead;
	}
}

int clock_gettime(clockid_t id, struct timespec *t) {
	if (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE) return syscall(SYS_clock_gettime, id, t);
	int64_t now = wall();
	t->tv_sec = now / 1000000000;
	t->tv_nsec = now % 1000000000;
	return 0;
}

int gettimeofday(struct timeval *restrict t, void *restrict zone) {
	(void)zone;
	int64_t now = wall();
	t->tv_sec = now / 1000000000;
	t->tv_usec = now % 1000000000 / 1000;
	return 0;
}

time_t time(time_t *t) {
	time_t now = wall() / 1000000000;
	if (t) *t = now;
	return now;
}
