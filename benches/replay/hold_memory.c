/*
 * Keeps the free memory of a virtual machine from going back to its host: hold_memory GIB
 *
 * A host that asks for free pages (virtio_balloon, "free page reporting") takes them in blocks of 2 MiB, seconds after they became free. Whoever
 * touches them next waits until the host has given them again: 10.5 us for each 4 KiB page where 1.6 us are usual, on one machine. A
 * program that fills the page cache then measures the host. This one touches GIB of memory, gives all back but one page of each MiB, and
 * stays: no block of 2 MiB becomes free as a whole. It prints "held" and ends with SIGTERM.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    const size_t page = 4096, step = (size_t)1 << 20;
    size_t bytes = (size_t)(argc == 2 ? atoi(argv[1]) : 0) << 30;
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (bytes == 0 || memory == MAP_FAILED) {
        fprintf(stderr, "hold_memory GIB: that much memory, of what is free\n");
        return 2;
    }
    for (size_t at = 0; at < bytes; at += page)
        memory[at] = 1;
    for (size_t at = 0; at < bytes; at += step)
        madvise(memory + at + page, step - page, MADV_DONTNEED);
    puts("held");
    fflush(stdout);
    for (;;)
        pause();
}
