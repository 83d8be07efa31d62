/* Requests completed late, in any order, some at a time, only asked about, freed, never; messages in between. */
#include "expect.h"

enum { MANY = 24 };
static MPI_File file;
static MPI_Request all[MANY + 2];
static int numbers[MANY + 2];
static int next, in, out;
static char data[MANY][64];

static void start(int i) {
    int code = i % 2 ? MPI_File_iread_at(file, 64 * i, data[i], i, MPI_BYTE, all + i)
                     : MPI_File_iwrite_at(file, 64 * i, data[i], i, MPI_BYTE, all + i);
    numbers[i] = ++next;
    expect("File_i%s_at handle=1 offset=%d count=%d type=BYTE request=%d", i % 2 ? "read" : "write", 64 * i, i, next);
    done(code);
}

static long bytes(const MPI_Status *status) {
    int n;
    MPI_Get_elements(status, MPI_BYTE, &n);
    return n;
}

static void start_all(void) {
    for (int i = 0; i < MANY; i++) start(i);
    MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, all + MANY);
    MPI_Isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, all + MANY + 1);
}

/* Those that are pending still, as the call was asked about them. */
static void asked(const char *name, const MPI_Request *before) {
    expect("%s requests=", name);
    for (int i = 0, first = 1; i < MANY; i++)
        if (before[i] != MPI_REQUEST_NULL) expect(first ? "%d" : ",%d", numbers[i]), first = 0;
}

static int left(void) {
    int n = 0;
    for (int i = 0; i < MANY; i++) n += all[i] != MPI_REQUEST_NULL;
    return n;
}

/* The completed ones in the order of the array. */
static void completed(const char *name, const MPI_Request *before, int found, const int *indices, const MPI_Status *statuses, int code) {
    int any = 0;
    for (int k = 0; k < found; k++) any |= indices[k] < MANY;
    if (!any && strcmp(name, "Waitall")) return;
    asked(name, before);
    for (int i = 0, first = 1; i < MANY; i++)
        for (int k = 0; k < found; k++)
            if (indices[k] == i) expect(first ? " done=%d:%ld" : ",%d:%ld", numbers[i], bytes(statuses + k)), first = 0;
    done(code);
}

int main(int argc, char **argv) {
    begin(&argc, &argv);
    char path[4096];
    snprintf(path, sizeof path, "%s/file-%d", argv[2], rank);
    MPI_Request before[MANY + 2];
    MPI_Status statuses[MANY + 2], status;
    int indices[MANY + 2], found, flag, index, code;
    code = MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &file);
    expect("File_open handle=1 name=%s comm=%d mode=rdwr+create granted number=-1", path, rank), done(code);
    MPI_File_set_size(file, 64 * MANY);
    expect("File_set_size handle=1 offset=%d\n", 64 * MANY);

    start_all();
    memcpy(before, all, sizeof all);
    code = MPI_Waitall(MANY + 2, all, statuses);
    for (int i = 0; i < MANY; i++) indices[i] = i;
    completed("Waitall", before, MANY, indices, statuses, code);

    start_all();
    while (left()) {
        memcpy(before, all, sizeof all);
        code = MPI_Waitsome(MANY + 2, all, &found, indices, statuses);
        completed("Waitsome", before, found, indices, statuses, code);
    }
    MPI_Waitall(2, all + MANY, MPI_STATUSES_IGNORE);

    start_all();
    while (left()) {
        memcpy(before, all, sizeof all);
        code = MPI_Testsome(MANY + 2, all, &found, indices, statuses);
        completed("Testsome", before, found < 0 ? 0 : found, indices, statuses, code);
    }
    MPI_Waitall(2, all + MANY, MPI_STATUSES_IGNORE);

    start_all();
    while (left()) {
        memcpy(before, all, sizeof all);
        code = MPI_Waitany(MANY + 2, all, &index, &status);
        completed("Waitany", before, 1, &index, &status, code);
    }
    MPI_Waitall(2, all + MANY, MPI_STATUSES_IGNORE);

    start_all();
    while (left()) {
        memcpy(before, all, sizeof all);
        code = MPI_Testany(MANY + 2, all, &index, &flag, &status);
        completed("Testany", before, flag && index >= 0, &index, &status, code);
    }
    MPI_Waitall(2, all + MANY, MPI_STATUSES_IGNORE);

    /* Of files only the first: MPICH 4.0 fails an assertion when MPI_Testall finds some of many complete. */
    start_all();
    for (int i = 1; i < MANY; i++) {
        MPI_Wait(all + i, &status);
        expect("Wait requests=%d done=%d:%ld\n", numbers[i], numbers[i], bytes(&status));
    }
    memcpy(before, all, sizeof all);
    do code = MPI_Testall(MANY + 2, all, &flag, statuses);
    while (!flag);
    indices[0] = 0;
    completed("Testall", before, 1, indices, statuses, code);

    /* In the other order, with messages between, statuses ignored; one of them in a variable of its own. */
    for (int i = 0; i < MANY; i++) start(i);
    for (int i = MANY - 1; i > 1; i--) {
        MPI_Request request = all[i], pair[2];
        MPI_Irecv(&in, 1, MPI_INT, 0, 1, MPI_COMM_SELF, pair);
        MPI_Isend(&out, 1, MPI_INT, 0, 1, MPI_COMM_SELF, pair + 1);
        MPI_Waitall(2, pair, MPI_STATUSES_IGNORE);
        if (i % 3 == 0) {
            do MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
            while (!flag);
        } else {
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        expect("%s requests=%d done=%d:%d\n", i % 3 == 0 ? "Test" : "Wait", numbers[i], numbers[i], i);
    }
    /* Asking alone may never complete a request of a file. */
    flag = 0;
    for (int i = 0; i < 1000 && !flag; i++) MPI_Request_get_status(all[1], &flag, &status);
    if (flag) expect("Request_get_status requests=%d flag=1\n", numbers[1]);
    MPI_Request pending = all[1];
    MPI_Wait(&pending, &status);
    expect("Wait requests=%d done=%d:1\n", numbers[1], numbers[1]);
    MPI_Request_free(all);
    expect("Request_free requests=%d\n", numbers[0]);

    /* An error leaves no request. */
    code = MPI_File_iwrite_at(file, 0, data, -1, MPI_BYTE, all);
    expect("File_iwrite_at handle=1 offset=0 count=-1 type=BYTE"), done(code);
    code = MPI_File_close(&file);
    expect("File_close handle=1"), done(code);
    MPI_Wait(all + MANY, &status);
    printf("%d completed\n", next);
    end();
    return 0;
}
