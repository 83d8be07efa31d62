/* The part of shim.c that meets io_uring: submissions are looked at before io_uring_enter, completions after it. A struck operation
 * goes to the kernel as a NOP, its damage is done here, and its completion says what the rule wants. */
struct operation { struct rule *rule; int result, is_read, live; void *memory; };
struct uring {
    int fd, files[16];
    struct io_uring_params p;
    char *queue, *completions;
    struct io_uring_sqe *entries;
    unsigned taken, given;
    struct operation *operations;
};
static struct uring urings[64];
#define OPERATIONS 65536

static struct uring *uring_of(int fd) {
    for (int i = 0; i < 64; i++)
        if (urings[i].operations && urings[i].fd == fd) return &urings[i];
    return NULL;
}

/* Mapped once more: the program's own mmap may be taken by the MPI library, which watches memory. */
static void *mapped(int fd, size_t length, off_t at) {
    void *p = (void *)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
    return p == MAP_FAILED ? NULL : p;
}

static size_t queue_length(const struct io_uring_params *p) {
    size_t entries = p->sq_off.array + p->sq_entries * sizeof(unsigned);
    size_t ended = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    return entries > ended ? entries : ended; /* one mapping holds both since Linux 5.4 */
}

static void made(int fd, const struct io_uring_params *p) {
    for (int i = 0; i < 64; i++) {
        struct uring *u = &urings[i];
        if (u->operations) continue;
        *u = (struct uring){.fd = fd, .p = *p, .operations = calloc(OPERATIONS, sizeof *u->operations)};
        u->queue = u->completions = mapped(fd, queue_length(p), IORING_OFF_SQ_RING);
        u->entries = mapped(fd, p->sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
        return;
    }
}

static void closed(struct uring *u) {
    if (u->queue) syscall(SYS_munmap, u->queue, queue_length(&u->p));
    if (u->entries) syscall(SYS_munmap, u->entries, u->p.sq_entries * sizeof(struct io_uring_sqe));
    free(u->operations);
    *u = (struct uring){0};
}

static void *real_close;
int close(int fd) {
    struct uring *u = uring_of(fd);
    if (u) closed(u);
    struct rule *r = strike("close", fd, 0, 0);
    int result = REAL(close)(fd);
    return r && r->fault == ERROR ? (errno = r->error, -1) : result;
}

static void strike_entry(struct uring *u, struct io_uring_sqe *e) {
    struct operation *o = &u->operations[e->user_data % OPERATIONS];
    int writes = e->opcode == IORING_OP_WRITE || e->opcode == IORING_OP_WRITE_FIXED;
    int reads = e->opcode == IORING_OP_READ || e->opcode == IORING_OP_READ_FIXED;
    *o = (struct operation){0};
    if (!writes && !reads && e->opcode != IORING_OP_FSYNC) return;
    /* The buffered descriptor of a pair is the first one: it takes any length. */
    int fd = e->flags & IOSQE_FIXED_FILE ? u->files[0] : e->fd;
    struct rule *r = strike(writes ? "uring_write" : reads ? "uring_read" : "uring_fsync", fd, (long)e->off, e->len);
    if (!r) return;
    if (r->fault == SHORT && e->len >= 8192) {
        e->len = (e->len / 2) & ~4095u;
        return;
    }
    *o = (struct operation){.rule = r, .result = (int)e->len, .is_read = reads, .memory = (void *)e->addr, .live = 1};
    if (r->fault == ERROR) o->result = -r->error;
    if (r->fault == NOTHING || r->fault == SHORT) o->result = 0;
    if (reads && r->fault != ERROR && r->fault != NOTHING && r->fault != SHORT && r->fault != STALE) {
        if (r->fault == MISPLACE) e->off += e->len;
        return; /* read by the kernel, damaged when it is complete */
    }
    if (writes && r->fault >= FLIP) struck(r, 1, fd, (unsigned char *)e->addr, e->len, (off_t)e->off);
    __u64 name = e->user_data;
    *e = (struct io_uring_sqe){.opcode = IORING_OP_NOP, .user_data = name};
}

static void before(struct uring *u) {
    unsigned tail = __atomic_load_n((unsigned *)(u->queue + u->p.sq_off.tail), __ATOMIC_ACQUIRE);
    unsigned mask = *(unsigned *)(u->queue + u->p.sq_off.ring_mask);
    unsigned *array = (unsigned *)(u->queue + u->p.sq_off.array);
    for (; u->taken != tail; u->taken++) strike_entry(u, &u->entries[array[u->taken & mask]]);
}

static void after(struct uring *u) {
    unsigned tail = __atomic_load_n((unsigned *)(u->completions + u->p.cq_off.tail), __ATOMIC_ACQUIRE);
    unsigned mask = *(unsigned *)(u->completions + u->p.cq_off.ring_mask);
    struct io_uring_cqe *cqes = (struct io_uring_cqe *)(u->completions + u->p.cq_off.cqes);
    for (; u->given != tail; u->given++) {
        struct io_uring_cqe *c = &cqes[u->given & mask];
        struct operation *o = &u->operations[c->user_data % OPERATIONS];
        if (!o->live) continue;
        o->live = 0;
        if (o->is_read && o->result > 0 && c->res > 0) rules_damage(o->rule->fault, o->memory, (size_t)c->res);
        c->res = o->result;
    }
}

static void *real_syscall;
long syscall(long number, ...) {
    va_list more;
    long a[6];
    va_start(more, number);
    for (int i = 0; i < 6; i++) a[i] = va_arg(more, long);
    va_end(more);
    if (!real_syscall) real_syscall = dlsym(RTLD_NEXT, "syscall");
    long (*call)(long, ...) = (long (*)(long, ...))real_syscall;
    struct uring *u = NULL;
    if (number == SYS_io_uring_enter && rule_count) u = uring_of((int)a[0]);
    if (u && u->queue && u->entries && !(u->p.flags & IORING_SETUP_SQPOLL)) before(u);
    else u = NULL;
    long result = call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int error = errno;
    if (u && u->completions) after(u);
    if (number == SYS_io_uring_setup && result >= 0 && rule_count) made((int)result, (struct io_uring_params *)a[1]);
    if (number == SYS_io_uring_register && result >= 0 && a[1] == IORING_REGISTER_FILES && (u = uring_of((int)a[0])))
        for (long i = 0; i < a[3] && i < 16; i++) u->files[i] = ((int *)a[2])[i];
    return errno = error, result;
}
