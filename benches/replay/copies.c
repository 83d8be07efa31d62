/* What the speed of copies to and from the page cache depends on, beside their size: copies.c FILE
 * 1. where the memory begins in its page; 2. with writes of what size the file was filled. Medians of rounds in turns. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 15, CALLS = 512, MOST = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, compare);
    return values[ROUNDS / 2];
}

/* Seconds of CALLS transfers, one behind the other. A short one ends the program. */
static double transfers(int file, int writes, char *memory, size_t bytes) {
    const double begin = now();
    for (int n = 0; n < CALLS; n++) {
        const off_t at = (off_t)bytes * n;
        const ssize_t moved = writes ? pwrite(file, memory, bytes, at) : pread(file, memory, bytes, at);
        if (moved != (ssize_t)bytes) {
            perror("short transfer");
            exit(1);
        }
    }
    return now() - begin;
}

static int filled(const char *name, char *memory, size_t piece) {
    unlink(name);
    const int file = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (file < 0) {
        perror(name);
        exit(1);
    }
    for (size_t at = 0; at < (size_t)CALLS * 65536; at += piece) {
        if (pwrite(file, memory, piece, (off_t)at) != (ssize_t)piece) {
            perror("fill");
            exit(1);
        }
    }
    fdatasync(file);
    return file;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        fputs("copies FILE (which is made, and removed)\n", stderr);
        return 2;
    }
    char *memory = aligned_alloc(4096, 4 << 20);
    if (!memory) return 1;
    memset(memory, 1, 4 << 20);
    static double writes[MOST][ROUNDS], reads[MOST][ROUNDS];

    const size_t behind[] = {0, 8, 16, 32, 64, 512};
    int file = filled(argv[1], memory, 65536);
    for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < 6; k++) {
            writes[k][r] = transfers(file, 1, memory + behind[k], 65536);
            reads[k][r] = transfers(file, 0, memory + behind[k], 65536);
        }
    close(file);
    const double write = median(writes[0]), read = median(reads[0]);
    for (int k = 0; k < 6; k++)
        printf("64 KiB, memory %3zu bytes behind a page: write %.2f, read %.2f of the speed of aligned ones\n", behind[k],
               write / (k ? median(writes[k]) : write), read / (k ? median(reads[k]) : read));

    const size_t pieces[] = {4096, 65536, 262144, 1 << 20, 4 << 20};
    for (int r = 0; r < ROUNDS; r++)
        for (int k = 0; k < 5; k++) {
            file = filled(argv[1], memory, pieces[k]);
            writes[k][r] = transfers(file, 1, memory, 4096);
            close(file);
        }
    for (int k = 0; k < 5; k++)
        printf("4 KiB write into a file filled by %4zu KiB: %.2f us\n", pieces[k] / 1024, median(writes[k]) / CALLS * 1e6);
    unlink(argv[1]);
    free(memory);
    return 0;
}
