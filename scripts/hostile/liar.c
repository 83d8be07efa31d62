/* A file system that lies and fails: FUSE by the kernel's own protocol, files in memory. Needs root and /dev/fuse, no library.
 *
 *   cc -O1 -o liar liar.c && ./liar DIR [RULES [SEED]]        mounts on DIR, answers until DIR is unmounted or it is ended
 *
 * Rules: rules.h. Calls: write read fsync flush open create statfs. Damage of a write lies in the file from then on, damage of a
 * read in the answer alone; stale at fsync: success, and what was written since the one before is gone. LIAR_DIRECT=1: no page
 * cache (FOPEN_DIRECT_IO). LIAR_BYTES: space it has (256 MiB). LIAR_LOG: file that gets a line for each struck call, and `healed`
 * when damage was covered by later writes before a sync, as when the kernel writes a page back twice.
 */
#define _GNU_SOURCE
#include "rules.h"
#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NODES 4096
#define MOST (1 << 20)
struct node {
    char name[256];
    uint64_t parent;
    uint32_t mode, links;
    int fd;
    uint64_t length, unsynced_from, unsynced_to, lookups, used;
    struct timespec changed;
};
static struct node nodes[NODES]; /* the number of a node is its place; 1 is the root */
static uint64_t space = 256 << 20, held;
static int device, direct;
static unsigned char out[MOST + 8192], in[MOST + 65536];

static void answer(uint64_t unique, int error, const void *data, size_t length) {
    struct fuse_out_header *h = (void *)out;
    *h = (struct fuse_out_header){.len = (uint32_t)(sizeof *h + length), .error = -error, .unique = unique};
    if (length && data != out + sizeof *h) memcpy(out + sizeof *h, data, length);
    if (write(device, out, h->len) < 0 && errno != ENOENT) perror("liar: answer");
}

/* Damage at rest that later writes cover before the file is synced: nobody had a chance to find it. One damage at a time. */
static struct { char file[512]; uint64_t from, to; } rest;

static void rest_damaged(const char *file, uint64_t from, uint64_t to) {
    snprintf(rest.file, sizeof rest.file, "%s", file);
    rest.from = from, rest.to = to;
}

/* A sound write of so many bytes: true if it covers the last of the damage. Parts are taken off at both ends only. */
static int rest_healed(const char *file, uint64_t from, uint64_t to) {
    if (rest.from >= rest.to || strcmp(rest.file, file)) return 0;
    if (from <= rest.from && to > rest.from) rest.from = to < rest.to ? to : rest.to;
    if (to >= rest.to && from < rest.to) rest.to = from > rest.from ? from : rest.from;
    return rest.from >= rest.to;
}

static struct rule *strike(const char *call, struct node *n) {
    struct rule *r = rules_strike(call, n->name);
    const char *log = getenv("LIAR_LOG");
    int fd = r && log && r->done <= 20 ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd >= 0) dprintf(fd, "%s %d/%d of %s\n", call, r->fault, r->error, n->name), close(fd);
    return r;
}

static void healed(struct node *n) {
    const char *log = getenv("LIAR_LOG");
    int fd = log ? open(log, O_WRONLY | O_CREAT | O_APPEND, 0600) : -1;
    if (fd >= 0) dprintf(fd, "healed %s\n", n->name), close(fd);
}

static struct fuse_attr attributes(uint64_t id) {
    struct node *n = &nodes[id];
    return (struct fuse_attr){.ino = id, .size = n->length, .blocks = (n->length + 511) / 512, .mode = n->mode, .nlink = n->links,
        .blksize = 4096, .mtime = (uint64_t)n->changed.tv_sec, .mtimensec = (uint32_t)n->changed.tv_nsec,
        .ctime = (uint64_t)n->changed.tv_sec, .atime = (uint64_t)n->changed.tv_sec};
}

static uint64_t find(uint64_t parent, const char *name) {
    for (uint64_t i = 2; i < NODES; i++)
        if (nodes[i].links && nodes[i].parent == parent && !strcmp(nodes[i].name, name)) return i;
    return 0;
}

static uint64_t make(uint64_t parent, const char *name, uint32_t mode) {
    for (uint64_t i = 2; i < NODES; i++) {
        if (nodes[i].used) continue;
        nodes[i] = (struct node){.parent = parent, .mode = mode, .links = S_ISDIR(mode) ? 2 : 1, .used = 1, .fd = -1};
        snprintf(nodes[i].name, sizeof nodes[i].name, "%s", name);
        clock_gettime(CLOCK_REALTIME, &nodes[i].changed);
        if (S_ISREG(mode)) nodes[i].fd = memfd_create("liar", 0);
        return i;
    }
    return 0;
}

static void forget(uint64_t id, uint64_t count) {
    struct node *n = &nodes[id];
    n->lookups = n->lookups > count ? n->lookups - count : 0;
    if (id < 2 || n->links || n->lookups) return;
    held -= n->length;
    if (n->fd >= 0) close(n->fd);
    *n = (struct node){0};
}

static struct fuse_entry_out entry(uint64_t id) {
    nodes[id].lookups++;
    return (struct fuse_entry_out){.nodeid = id, .attr = attributes(id)};
}

static int resize(struct node *n, uint64_t length) {
    if (length > n->length && held + length - n->length > space) return ENOSPC;
    held += length - n->length;
    n->length = length;
    return ftruncate(n->fd, (off_t)length) ? errno : 0;
}

static void do_write(uint64_t unique, struct node *n, const struct fuse_write_in *w, unsigned char *bytes) {
    uint64_t at = w->offset, length = w->size;
    struct rule *r = strike("write", n);
    if (r && r->fault == ERROR) return answer(unique, r->error, NULL, 0);
    if (r && r->fault == NOTHING) length = 0;
    if (r && r->fault == SHORT) length /= 2;
    if (r && r->fault == MISPLACE) at += length;
    int error = at + length > n->length ? resize(n, at + length) : 0;
    if (error) return answer(unique, error, NULL, 0);
    if (r) rules_damage(r->fault, bytes, length);
    if (!r || r->fault != STALE)
        if (pwrite(n->fd, bytes, length, (off_t)at) < 0) return answer(unique, errno, NULL, 0);
    if (r && r->fault >= FLIP) rest_damaged(n->name, r->fault == MISPLACE ? w->offset : at, at + length);
    else if (rest_healed(n->name, at, at + length)) healed(n);
    if (!n->unsynced_to || at < n->unsynced_from) n->unsynced_from = at;
    if (at + length > n->unsynced_to) n->unsynced_to = at + length;
    clock_gettime(CLOCK_REALTIME, &n->changed);
    answer(unique, 0, &(struct fuse_write_out){.size = (uint32_t)length}, sizeof(struct fuse_write_out));
}

static void do_read(uint64_t unique, struct node *n, const struct fuse_read_in *a) {
    struct rule *r = strike("read", n);
    if (r && r->fault == ERROR) return answer(unique, r->error, NULL, 0);
    unsigned char *bytes = out + sizeof(struct fuse_out_header);
    uint64_t at = a->offset + (r && r->fault == MISPLACE ? a->size : 0);
    ssize_t got = pread(n->fd, bytes, a->size > MOST ? MOST : a->size, (off_t)at);
    if (got < 0) return answer(unique, errno, NULL, 0);
    if (r && r->fault == NOTHING) got = 0;
    if (r && r->fault == SHORT) got /= 2;
    if (r) rules_damage(r->fault == STALE ? ZERO : r->fault, bytes, (size_t)got);
    answer(unique, 0, bytes, (size_t)got);
}

static int do_fsync(struct node *n) {
    if (!n->unsynced_to) return 0; /* a sync of nothing has nothing to lose */
    struct rule *r = strike("fsync", n);
    if (r && r->fault == ERROR) return r->error;
    if (r && r->fault == STALE && n->fd >= 0)
        fallocate(n->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)n->unsynced_from,
                  (off_t)(n->unsynced_to - n->unsynced_from));
    n->unsynced_from = n->unsynced_to = 0;
    if (!strcmp(rest.file, n->name)) rest.from = rest.to = 0; /* from here on it can be found */
    return 0;
}

static int empty(uint64_t id) {
    for (uint64_t i = 2; i < NODES; i++)
        if (nodes[i].links && nodes[i].parent == id) return 0;
    return 1;
}

static int do_remove(uint64_t parent, const char *name) {
    uint64_t id = find(parent, name);
    if (!id) return ENOENT;
    if (S_ISDIR(nodes[id].mode) && !empty(id)) return ENOTEMPTY;
    nodes[id].links = 0;
    forget(id, 0);
    return 0;
}

static int do_rename(uint64_t from, uint64_t to, const char *name) {
    const char *new = name + strlen(name) + 1;
    uint64_t id = find(from, name), there = find(to, new);
    if (!id) return ENOENT;
    if (there && there != id && do_remove(to, new)) return ENOTEMPTY;
    nodes[id].parent = to;
    snprintf(nodes[id].name, sizeof nodes[id].name, "%s", new);
    return 0;
}

static void do_list(uint64_t unique, uint64_t id, const struct fuse_read_in *a) {
    static unsigned char list[65536];
    size_t length = 0;
    for (uint64_t i = a->offset + 2; i < NODES; i++) {
        if (!nodes[i].links || nodes[i].parent != id) continue;
        size_t n = strlen(nodes[i].name), room = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + n);
        if (length + room > a->size || length + room > sizeof list) break;
        struct fuse_dirent *d = memset(list + length, 0, room);
        *d = (struct fuse_dirent){.ino = i, .off = i - 1, .namelen = (uint32_t)n, .type = nodes[i].mode >> 12};
        memcpy(d->name, nodes[i].name, n);
        length += room;
    }
    answer(unique, 0, list, length);
}

static int do_setattr(struct node *n, const struct fuse_setattr_in *a) {
    if (a->valid & FATTR_MODE) n->mode = (n->mode & S_IFMT) | (a->mode & 07777);
    return a->valid & FATTR_SIZE && n->fd >= 0 ? resize(n, a->size) : 0;
}

static void made(uint64_t unique, uint64_t parent, const char *name, uint32_t mode, int open) {
    struct { struct fuse_entry_out e; struct fuse_open_out o; } both = {0};
    struct rule *r = strike(open ? "create" : "mkdir", &nodes[parent]);
    if (r && r->fault == ERROR) return answer(unique, r->error, NULL, 0);
    uint64_t id = find(parent, name);
    if (id && !open) return answer(unique, EEXIST, NULL, 0);
    if (!id && !(id = make(parent, name, mode))) return answer(unique, ENOSPC, NULL, 0);
    both.e = entry(id);
    both.o.open_flags = direct ? FOPEN_DIRECT_IO : 0;
    answer(unique, 0, &both, open ? sizeof both : sizeof both.e);
}

static void serve(const struct fuse_in_header *h, unsigned char *body) {
    uint64_t u = h->unique, id = h->nodeid < NODES ? h->nodeid : 0, found;
    struct node *n = &nodes[id];
    struct rule *r;
    switch (h->opcode) {
    case FUSE_INIT: {
        const struct fuse_init_in *a = (void *)body;
        struct fuse_init_out o = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_readahead = a->max_readahead,
            .flags = a->flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ), .max_write = MOST, .max_pages = MOST / 4096,
            .time_gran = 1, .max_background = 16, .congestion_threshold = 12};
        return answer(u, 0, &o, sizeof o);
    }
    case FUSE_LOOKUP:
        if (!(found = find(id, (char *)body))) return answer(u, ENOENT, NULL, 0);
        struct fuse_entry_out e = entry(found);
        return answer(u, 0, &e, sizeof e);
    case FUSE_FORGET: return forget(id, ((struct fuse_forget_in *)body)->nlookup);
    case FUSE_BATCH_FORGET: {
        struct fuse_batch_forget_in *b = (void *)body;
        struct fuse_forget_one *one = (void *)(b + 1);
        for (uint32_t i = 0; i < b->count; i++)
            if (one[i].nodeid < NODES) forget(one[i].nodeid, one[i].nlookup);
        return;
    }
    case FUSE_SETATTR: {
        int error = do_setattr(n, (void *)body);
        if (error) return answer(u, error, NULL, 0);
    } /* fall through */
    case FUSE_GETATTR: {
        struct fuse_attr_out o = {.attr = attributes(id)};
        return answer(u, 0, &o, sizeof o);
    }
    case FUSE_MKDIR: return made(u, id, (char *)body + sizeof(struct fuse_mkdir_in), S_IFDIR | ((struct fuse_mkdir_in *)body)->mode, 0);
    case FUSE_CREATE: return made(u, id, (char *)body + sizeof(struct fuse_create_in), ((struct fuse_create_in *)body)->mode, 1);
    case FUSE_UNLINK:
    case FUSE_RMDIR: return answer(u, do_remove(id, (char *)body), NULL, 0);
    case FUSE_RENAME: return answer(u, do_rename(id, ((struct fuse_rename_in *)body)->newdir, (char *)body + sizeof(struct fuse_rename_in)), NULL, 0);
    case FUSE_RENAME2: return answer(u, do_rename(id, ((struct fuse_rename2_in *)body)->newdir, (char *)body + sizeof(struct fuse_rename2_in)), NULL, 0);
    case FUSE_OPEN:
        if ((r = strike("open", n)) && r->fault == ERROR) return answer(u, r->error, NULL, 0);
        return answer(u, 0, &(struct fuse_open_out){.open_flags = direct ? FOPEN_DIRECT_IO : 0}, sizeof(struct fuse_open_out));
    case FUSE_OPENDIR: return answer(u, 0, &(struct fuse_open_out){0}, sizeof(struct fuse_open_out));
    case FUSE_READ: return do_read(u, n, (void *)body);
    case FUSE_WRITE: return do_write(u, n, (void *)body, body + sizeof(struct fuse_write_in));
    case FUSE_READDIR: return do_list(u, id, (void *)body);
    case FUSE_STATFS: {
        uint64_t left = (space - held) / 4096;
        struct fuse_statfs_out o = {.st = {.blocks = space / 4096, .bfree = left, .bavail = left, .files = NODES, .ffree = NODES / 2,
            .bsize = 4096, .frsize = 4096, .namelen = 255}};
        if ((r = strike("statfs", n)) && r->fault == ERROR) return answer(u, r->error, NULL, 0);
        return answer(u, 0, &o, sizeof o);
    }
    case FUSE_FSYNC: return answer(u, do_fsync(n), NULL, 0);
    case FUSE_FLUSH:
        r = strike("flush", n);
        return answer(u, r && r->fault == ERROR ? r->error : 0, NULL, 0);
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
    case FUSE_FSYNCDIR:
    case FUSE_ACCESS: return answer(u, 0, NULL, 0);
    case FUSE_INTERRUPT: return;
    case FUSE_DESTROY: exit(0);
    default: return answer(u, ENOSYS, NULL, 0);
    }
}

int main(int count, char **words) {
    char options[128];
    if (count < 2) return fprintf(stderr, "liar DIR [RULES [SEED]]\n"), 2;
    rules_read(count > 2 ? words[2] : NULL, count > 3 ? words[3] : NULL, -1);
    direct = getenv("LIAR_DIRECT") != NULL;
    if (getenv("LIAR_BYTES")) space = strtoull(getenv("LIAR_BYTES"), NULL, 10);
    nodes[1] = (struct node){.mode = S_IFDIR | 0755, .links = 2, .used = 1, .fd = -1};
    if ((device = open("/dev/fuse", O_RDWR | O_CLOEXEC)) < 0) return perror("liar: /dev/fuse"), 1;
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other", device, getuid(), getgid());
    if (mount("liar", words[1], "fuse.liar", MS_NOSUID | MS_NODEV, options)) return perror("liar: mount"), 1;
    for (;;) {
        ssize_t n = read(device, in, sizeof in);
        if (n < 0 && (errno == EINTR || errno == ENOENT || errno == EAGAIN)) continue;
        if (n < (ssize_t)sizeof(struct fuse_in_header)) return 0; /* unmounted */
        in[n] = 0;
        serve((void *)in, in + sizeof(struct fuse_in_header));
    }
}
