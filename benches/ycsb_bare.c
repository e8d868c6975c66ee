/* A bare loop over RocksDB's C interface: what `benches/ycsb.py` compares the clients with.
 *
 * ycsb_bare LIBRARY DIRECTORY RECORDS OPERATIONS READ_PERCENT: loads records of 1140 bytes, then
 * reads, or reads and writes back, records drawn uniformly. Prints operations per second of the
 * second part. The options are those of YCSB's client, as iolab sets them.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define F(result, name, ...) static result (*name)(__VA_ARGS__)
F(void *, options_create, void);
F(void, options_set_create_if_missing, void *, unsigned char);
F(void, options_increase_parallelism, void *, int);
F(void, options_optimize_level_style_compaction, void *, uint64_t);
F(void *, open_db, const void *, const char *, char **);
F(void, close_db, void *);
F(void *, writeoptions_create, void);
F(void *, readoptions_create, void);
F(void, put, void *, const void *, const char *, size_t, const char *, size_t, char **);
F(void *, get_pinned, void *, const void *, const char *, size_t, char **);
F(const char *, slice_value, const void *, size_t *);
F(void, slice_destroy, void *);

static void *library;

static void *symbol(const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    return found;
}

static uint64_t state = 88172645463325252u;

static uint64_t draw(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* The key of a number: `user` and YCSB's hash. */
static size_t key_of(uint64_t number, char *key) {
    uint64_t hash = 0xCBF29CE484222325u;
    for (int byte = 0; byte < 8; byte++) {
        hash = (hash ^ (number & 0xff)) * 1099511628211u;
        number >>= 8;
    }
    if ((int64_t)hash < 0) hash = -hash;
    char digits[24];
    size_t length = 0;
    do digits[length++] = '0' + hash % 10;
    while (hash /= 10);
    memcpy(key, "user", 4);
    for (size_t at = 0; at < length; at++) key[4 + at] = digits[length - 1 - at];
    return 4 + length;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **words) {
    if (count != 6) return 2;
    if (!(library = dlopen(words[1], RTLD_NOW))) return 1;
    options_create = symbol("rocksdb_options_create");
    options_set_create_if_missing = symbol("rocksdb_options_set_create_if_missing");
    options_increase_parallelism = symbol("rocksdb_options_increase_parallelism");
    options_optimize_level_style_compaction =
        symbol("rocksdb_options_optimize_level_style_compaction");
    open_db = symbol("rocksdb_open");
    close_db = symbol("rocksdb_close");
    writeoptions_create = symbol("rocksdb_writeoptions_create");
    readoptions_create = symbol("rocksdb_readoptions_create");
    put = symbol("rocksdb_put");
    get_pinned = symbol("rocksdb_get_pinned");
    slice_value = symbol("rocksdb_pinnableslice_value");
    slice_destroy = symbol("rocksdb_pinnableslice_destroy");
    uint64_t records = strtoull(words[3], 0, 10), operations = strtoull(words[4], 0, 10);
    uint64_t reads = strtoull(words[5], 0, 10);
    void *options = options_create(), *writing = writeoptions_create();
    void *reading = readoptions_create();
    options_increase_parallelism(options, 2 * (int)sysconf(_SC_NPROCESSORS_ONLN));
    options_optimize_level_style_compaction(options, 512ull << 20);
    options_set_create_if_missing(options, 1);
    char *error = 0, key[32], record[1140], buffer[1140];
    void *db = open_db(options, words[2], &error);
    for (size_t at = 0; at < sizeof record; at++) record[at] = ' ' + draw() % 95;
    for (uint64_t number = 0; number < records && !error; number++)
        put(db, writing, key, key_of(number, key), record, sizeof record, &error);
    double began = now();
    for (uint64_t done = 0; done < operations && !error; done++) {
        size_t length = key_of(draw() % records, key), bytes = 0;
        void *slice = get_pinned(db, reading, key, length, &error);
        if (!slice) return 1;
        const char *value = slice_value(slice, &bytes);
        memcpy(buffer, value, bytes);
        slice_destroy(slice);
        if (draw() % 100 >= reads) {
            for (size_t at = 14; at < 114; at++) buffer[at] = ' ' + draw() % 95;
            put(db, writing, key, length, buffer, bytes, &error);
        }
    }
    double elapsed = now() - began;
    if (error) fprintf(stderr, "%s\n", error);
    close_db(db);
    printf("%.0f\n", operations / elapsed);
    return error != 0;
}
