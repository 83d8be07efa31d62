/* Rules of faults, shared by shim.c and liar.c.
 *
 *   CALL:FAULT[:KEY=VALUE]...[;RULE]...
 *
 * CALL   what is met (each program names its calls)
 * FAULT  an error (eio enospc eintr eagain edquot eacces emfile emlink), short, nothing (0 bytes), or damage that is
 *        called success: flip, zero, swap, stale (nothing moved), misplace (one length further)
 * nth=N    begins at the Nth matching call of the process (1)    times=N  so many calls (1; 0: all that follow)
 * one_in=N instead: each call with a chance of 1 in N, by the seed
 * path=S   only files whose path contains S, but=S: does not     rank=N   only this rank
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum fault { NONE, ERROR, SHORT, NOTHING, FLIP, ZERO, SWAP, STALE, MISPLACE };
struct rule {
    char call[24], path[256], but[64];
    enum fault fault;
    int error, rank;
    unsigned long nth, times, one_in, met, done;
};
static struct rule rules[16];
static int rule_count;
static uint64_t rule_random = 88172645463325252u;

static const struct { const char *name; enum fault fault; int error; } FAULTS[] = {
    {"eio", ERROR, EIO},         {"enospc", ERROR, ENOSPC}, {"eintr", ERROR, EINTR},   {"eagain", ERROR, EAGAIN},
    {"edquot", ERROR, EDQUOT},   {"eacces", ERROR, EACCES}, {"emfile", ERROR, EMFILE}, {"emlink", ERROR, EMLINK},
    {"enosys", ERROR, ENOSYS},   {"eopnotsupp", ERROR, EOPNOTSUPP}, {"enomem", ERROR, ENOMEM}, {"eperm", ERROR, EPERM},
    {"short", SHORT, 0},         {"nothing", NOTHING, 0},   {"flip", FLIP, 0},         {"zero", ZERO, 0},
    {"swap", SWAP, 0},           {"stale", STALE, 0},       {"misplace", MISPLACE, 0},
};

/* Reads the rules; a word that is not known ends the program, so that no case passes because nothing was injected. */
static void rules_read(const char *text, const char *seed, int rank) {
    char *copy = strdup(text ? text : ""), *outer, *inner;
    rule_random ^= (seed ? strtoull(seed, NULL, 10) : 0) * 0x9E3779B97F4A7C15u + (uint64_t)(rank + 1) * 0xD1B54A32D192ED03u;
    for (char *one = strtok_r(copy, ";", &outer); one && rule_count < 16; one = strtok_r(NULL, ";", &outer)) {
        struct rule r = {.nth = 1, .times = 1, .rank = -1};
        char *call = strtok_r(one, ":", &inner), *fault = strtok_r(NULL, ":", &inner);
        unsigned known = 0;
        for (unsigned i = 0; fault && i < sizeof FAULTS / sizeof *FAULTS; i++)
            if (!strcmp(fault, FAULTS[i].name)) r.fault = FAULTS[i].fault, r.error = FAULTS[i].error, known = 1;
        for (char *key = strtok_r(NULL, ":", &inner); key && known; key = strtok_r(NULL, ":", &inner)) {
            char *value = strchr(key, '=');
            if (!value) { known = 0; break; }
            *value++ = 0;
            if (!strcmp(key, "nth")) r.nth = strtoul(value, NULL, 10);
            else if (!strcmp(key, "times")) r.times = strtoul(value, NULL, 10);
            else if (!strcmp(key, "one_in")) r.one_in = strtoul(value, NULL, 10), r.times = 0;
            else if (!strcmp(key, "rank")) r.rank = atoi(value);
            else if (!strcmp(key, "but")) snprintf(r.but, sizeof r.but, "%s", value);
            else if (!strcmp(key, "path")) snprintf(r.path, sizeof r.path, "%s", value);
            else known = 0;
        }
        if (!known) { fprintf(stderr, "hostile: a rule that is not understood: %s\n", text); _Exit(99); }
        snprintf(r.call, sizeof r.call, "%s", call);
        if (r.rank < 0 || r.rank == rank) rules[rule_count++] = r;
    }
    free(copy);
}

static inline int rules_for(const char *call) {
    for (int i = 0; i < rule_count; i++)
        if (!strcmp(rules[i].call, call)) return 1;
    return 0;
}

/* The rule that strikes this call, if one does. */
static struct rule *rules_strike(const char *call, const char *path) {
    for (int i = 0; i < rule_count; i++) {
        struct rule *r = &rules[i];
        if (strcmp(r->call, call) || !strstr(path, r->path) || (*r->but && strstr(path, r->but))) continue;
        r->met++;
        if (r->one_in) {
            rule_random ^= rule_random << 13, rule_random ^= rule_random >> 7, rule_random ^= rule_random << 17;
            if (rule_random % r->one_in) continue;
        } else if (r->met < r->nth || (r->times && r->met >= r->nth + r->times)) continue;
        r->done++;
        return r;
    }
    return NULL;
}

/* Damages bytes in memory as a rule says; stale and misplace are matters of the caller. */
static void rules_damage(enum fault fault, unsigned char *bytes, size_t length) {
    if (!length) return;
    if (fault == FLIP) bytes[length / 2] ^= 0x10;
    if (fault == ZERO) memset(bytes, 0, length);
    if (fault == SWAP)
        for (size_t half = length / 2, i = 0; i < half; i++) {
            unsigned char other = bytes[i];
            bytes[i] = bytes[length - half + i], bytes[length - half + i] = other;
        }
}
