/*
 * Keeps the free memory of a virtual machine from going back to its host: hold_memory
 *
 * A host that asks for free pages (virtio_balloon, "free page reporting") takes them in blocks of 2 MiB, seconds after they became free. Whoever
 * touches them next waits until the host has given them again: 9 us for each 4 KiB page where 0.75 us are usual, on one machine. A
 * program that fills the page cache then measures the host. This one touches nearly all memory, gives all back but one page of each
 * 2 MiB, and stays: no block of 2 MiB becomes free as a whole. It prints "held" and ends with SIGTERM.
 *
 * The pages that stay are pinned, as registered buffers of io_uring: others are moved together by the kernel (compaction) within minutes, and whole
 * blocks are free again. Little may be left out: large writes ask for large blocks, and get just those that are not held.
 */
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { PAGE = 4096, STEP = 2 << 20, BUFFERS_OF_A_RING = 1 << 14, LEFT_MIB = 32, HUGE_PAGE = 2 << 20, MOST_WHOLE = 1 << 30 };

static void give_up(const char *what)
{
    perror(what);
    exit(2);
}

/* One page of each STEP stays where it is. */
static void pin(char *memory, size_t bytes)
{
    static struct iovec pages[BUFFERS_OF_A_RING];
    for (size_t at = 0; at < bytes;) {
        struct io_uring_params params = {0};
        int ring = (int)syscall(SYS_io_uring_setup, 1, &params);
        unsigned count = 0;
        if (ring < 0)
            give_up("io_uring_setup");
        for (; at < bytes && count < BUFFERS_OF_A_RING; at += STEP)
            pages[count++] = (struct iovec){memory + at, PAGE};
        if (syscall(SYS_io_uring_register, ring, IORING_REGISTER_BUFFERS, pages, count) < 0)
            give_up("io_uring_register: pages cannot be pinned");
    }
}

/* What programs could still have, by the kernel's word. */
static size_t available_mib(void)
{
    char line[128];
    size_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %zu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib >> 10;
}

/* Free blocks of 2 MiB, of zones that programs get memory from. */
static size_t free_blocks(void)
{
    char line[512], zone[32];
    size_t blocks = 0, two, four;
    FILE *file = fopen("/proc/buddyinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "Node %*d, zone %31s %*u %*u %*u %*u %*u %*u %*u %*u %*u %zu %zu", zone, &two, &four) == 3 && strcmp(zone, "DMA"))
            blocks += two + 2 * four;
    if (file)
        fclose(file);
    return blocks;
}

/* What was never touched, and is whole: kept as huge pages. */
static void keep_whole_blocks(void)
{
    char *memory = mmap(NULL, MOST_WHOLE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        give_up("mmap");
    madvise(memory, MOST_WHOLE, MADV_HUGEPAGE);
    char *end = memory + MOST_WHOLE;
    memory += (HUGE_PAGE - (size_t)memory % HUGE_PAGE) % HUGE_PAGE;
    for (; memory + HUGE_PAGE <= end && free_blocks() > 0; memory += HUGE_PAGE)
        *memory = 1;
}

int main(void)
{
    size_t bytes = available_mib() << 20;
    char *memory = mmap(NULL, bytes + (8 << 20), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == 0 || memory == MAP_FAILED) {
        fprintf(stderr, "hold_memory: no memory could be asked for\n");
        return 2;
    }
    /* A huge page of which a part is pinned is never split, and nothing of it given back. */
    madvise(memory, bytes, MADV_NOHUGEPAGE);
    size_t end = bytes;
    bytes = 0;
    while (bytes < end && available_mib() > LEFT_MIB)
        for (size_t part = 0; part < 8 << 20; part += PAGE, bytes += PAGE)
            memory[bytes] = 1;
    pin(memory, bytes);
    for (size_t at = 0; at < bytes; at += STEP)
        madvise(memory + at + PAGE, STEP - PAGE, MADV_DONTNEED);
    keep_whole_blocks();
    puts("held");
    fflush(stdout);
    for (;;)
        pause();
}
