/*
 * What a read from the page cache costs, by the memory it goes to and by the pages it comes from: pages FILE
 *
 * First into one buffer, from a new file of 4 MiB that was just written: the first of its kind, then those that get the pages of the one before,
 * which was removed; and the same with a second between writing and reading. Then into rings of 1 to 128 MiB, from a file of 64 MiB. GB/s.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MIB = 1 << 20, RING = 128 * MIB, FILE_BYTES = 64 * MIB, NEW_BYTES = 4 * MIB, ALL = 256 * MIB };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void need(int done, const char *what)
{
    if (!done) {
        perror(what);
        exit(1);
    }
}

static int made(const char *name, const char *data, size_t bytes, int again)
{
    if (again)
        need(unlink(name) == 0, "unlink");
    int file = open(name, O_RDWR | O_CREAT | (again ? O_EXCL : O_TRUNC), 0600);
    need(file >= 0, name);
    for (size_t at = 0; at < bytes; at += MIB)
        need(pwrite(file, data, MIB, (off_t)at) == MIB, "pwrite");
    need(fdatasync(file) == 0, "fdatasync");
    return file;
}

/* GB/s of reads of `size`, in a round through `ring` bytes of memory and `bytes` of the file. */
static double speed(int file, char *memory, size_t ring, size_t bytes, size_t size, size_t all)
{
    double in_calls = 0;
    for (size_t done = 0, to = 0, from = 0; done < all; done += size, to += size, from += size) {
        if (to + size > ring)
            to = 0;
        if (from + size > bytes)
            from = 0;
        double begin = seconds();
        need(pread(file, memory + to, size, (off_t)from) == (ssize_t)size, "pread");
        in_calls += seconds() - begin;
    }
    return (double)all / in_calls * 1e-9;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fputs("usage: pages FILE\n", stderr);
        return 2;
    }
    char *memory = malloc(RING);
    need(memory != NULL, "malloc");
    memset(memory, 1, RING);
    int file = -1;
    for (unsigned pause = 0; pause < 2; pause++)
        for (int turn = 0; turn < 4; turn++) {
            file = made(argv[1], memory + 8 * MIB, NEW_BYTES, turn + pause > 0);
            sleep(pause);
            printf("new file %d, %u s old %6.2f\n", turn + 1, pause, speed(file, memory, MIB / 2, NEW_BYTES, MIB / 2, NEW_BYTES));
            close(file);
        }
    file = made(argv[1], memory, FILE_BYTES, 1);
    for (size_t size = 4096; size <= MIB; size *= 16)
        for (size_t ring = MIB; ring <= RING; ring *= 2)
            printf("%7zu bytes into %3zu MiB %6.2f\n", size, ring / MIB, speed(file, memory, ring, FILE_BYTES, size, ALL));
    close(file);
    need(unlink(argv[1]) == 0, "unlink");
    return 0;
}
