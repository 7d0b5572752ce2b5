/* Fuzzes the reader of safetensors files. Any bytes are either read as a file or refused with RuntimeError. A file that was read is written, read and
 * written again; both written files must be the same bit for bit. The headers are random bytes, random sequences of words of the format, valid
 * headers, or valid headers with some bytes changed. */
#include "fuzz.h"

enum { TEXT = 1 << 12 };

static const char *const words[] = {
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\"a\"",
    "\"b\"",
    "\"dtype\"",
    "\"shape\"",
    "\"U8\"",
    "\"F32\"",
    "\"BOOL\"",
    "\"X\"",
    "[]",
    "[0]",
    "[1,2]",
    "[2]",
    "[0,0]",
    "[0,1]",
    "[0,8]",
    "[1,2]",
    "[8,16]",
    "0",
    "1",
    "-1",
    "01",
    "1.5",
    "1e3",
    "4294967296",
    "true",
    "null",
    " ",
    "\n",
    "\\u00",
    "\\ud83d",
    "\\ude00",
    "\\n",
    "\\",
    "\x80",
    "\xc3\xa9",
    "\"data_offsets\"",
    "\"__metadata__\"",
    "{\"__metadata__\":{\"a\":\"b\"}",
    "9223372036854775807",
    "18446744073709551615",
    ",\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[8,9]}",
    "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}",
};

static const struct {
    const char *name;
    int64_t size;
} dtypes[] = {{"U8", 1}, {"BOOL", 1}, {"F8_E4M3", 1}, {"BF16", 2}, {"I32", 4}, {"F32", 4}, {"C64", 8}, {"F64", 8}};

static size_t take_any(struct bytes *b, char *text)
{
    size_t n = 0;
    while (b->at < b->end && n < TEXT)
        text[n++] = (char)take_byte(b);
    return n;
}

static size_t take_words(struct bytes *b, char *text)
{
    size_t n = 0;
    while (b->at < b->end && n < TEXT - 128)
        n += (size_t)snprintf(text + n, TEXT - n, "%s", words[take_below(b, (int64_t)(sizeof words / sizeof *words))]);
    return n;
}

/* Writes a valid header to `text` and returns its length. *ret_data gets the number of bytes of data that must follow the header. */
static size_t take_proper(struct bytes *b, char *text, int64_t *ret_data)
{
    const int count = (int)take_below(b, 6);
    int64_t at = 0;
    size_t n = (size_t)snprintf(text, TEXT, "{\"__metadata__\":{\"k%d\":\"\\u00e9\"}", (int)take_below(b, 4));
    for (int i = 0; i < count; i++) {
        const size_t dtype = (size_t)take_below(b, (int64_t)(sizeof dtypes / sizeof *dtypes));
        const int64_t rows = take_below(b, 4), columns = take_below(b, 4), end = at + rows * columns * dtypes[dtype].size;
        n += (size_t)snprintf(text + n, TEXT - n, ",\"t%d\":{\"shape\":[%lld,%lld],\"data_offsets\":[%lld,%lld],\"dtype\":\"%s\"}", i,
                              (long long)rows, (long long)columns, (long long)at, (long long)end, dtypes[dtype].name);
        at = end;
    }
    *ret_data = at;
    return n + (size_t)snprintf(text + n, TEXT - n, "}");
}

/* Returns a file in a heap block of exactly its size, so that AddressSanitizer reports reads past its end. `length` is the header length that is
 * written into the file; it may be wrong. `data` is the number of bytes after the header. */
static uint8_t *make_file(const char *header, size_t header_size, uint64_t length, int64_t data, size_t *ret_size)
{
    *ret_size = 8 + header_size + (size_t)data;
    uint8_t *file = malloc(*ret_size);
    fuzz_expect(file != NULL, "memory for the file");
    for (int i = 0; i < 8; i++)
        file[i] = (uint8_t)(length >> 8 * i);
    memcpy(file + 8, header, header_size);
    for (int64_t i = 0; i < data; i++)
        file[8 + header_size + (size_t)i] = (uint8_t)(i * 37);
    return file;
}

/* ---- The check ------------------------------------------------------------------------------------------------------------------------------ */

/* Returns the bytes of a new file with all tensors and the metadata of `file`. */
static grd_tensor *rewritten(const grd_tensor_file *file)
{
    static grd_named_tensor list[TEXT];
    const int64_t n = grd_tensor_file_count(file);
    fuzz_expect(n <= TEXT, "room for the tensors");
    for (int64_t i = 0; i < n; i++) {
        const char *name = grd_tensor_file_name(file, i);
        fuzz_expect(name != NULL && grd_tensor_file_find(file, name) == i, "a tensor is found by its name");
        list[i] = (grd_named_tensor){name, grd_tensor_file_read(file, name)};
        fuzz_expect(grd_ok(), "a tensor of a checked header is read");
        fuzz_expect(grd_tensor_dtype(list[i].tensor) == grd_tensor_file_dtype(file, i), "the dtype of a tensor");
    }
    grd_tensor *bytes = grd_save_to_tensor((grd_named_tensors){list, n}, grd_tensor_file_metadata(file));
    fuzz_expect(grd_ok(), "what was read is written");
    return bytes;
}

/* Writes the contents of `file` to a second file, reads the second file, and writes its contents to a third file. The second and the third file must
 * have the same bytes. */
static void check_file(const grd_tensor_file *file)
{
    grd_tensor *first = rewritten(file);
    grd_tensor_file *again = grd_tensor_file_over(grd_data(first), (size_t)grd_numel(first));
    fuzz_expect(again != NULL && grd_tensor_file_count(again) == grd_tensor_file_count(file), "what was written is read");
    fuzz_expect(grd_tensor_file_metadata(again).n == grd_tensor_file_metadata(file).n, "the texts of a file");
    const grd_tensor *second = rewritten(again);
    fuzz_expect(grd_numel(first) == grd_numel(second) && memcmp(grd_data(first), grd_data(second), (size_t)grd_numel(first)) == 0,
                "the same bytes");
    grd_tensor_file_close(again);
}

static void check(struct bytes *b)
{
    static char header[TEXT];
    const int64_t kind = take_below(b, 4), mistakes = kind == 3 ? take_below(b, 4) : 0;
    int64_t data = take_below(b, 20);
    size_t header_size = kind == 0 ? take_any(b, header) : kind == 1 ? take_words(b, header) : take_proper(b, header, &data);
    for (int64_t i = 0; i < mistakes; i++)
        header[(size_t)take_extreme(b) % header_size] = (char)take_byte(b);
    const uint64_t length = take_chance(b, 16) ? (uint64_t)take_extreme(b) : header_size;
    size_t size;
    uint8_t *bytes = make_file(header, header_size, length, data, &size);
    grd_tensor_file *file = grd_tensor_file_over(bytes, size);
    fuzz_expect((file == NULL) == !grd_ok(), "a file, or an error");
    if (file != NULL) {
        check_file(file);
    } else {
        fuzz_expect(grd_error_get() == GRD_ERROR_RUNTIME && (kind != 2 || length != header_size),
                    "a damaged file is a RuntimeError, a proper one is none");
        grd_error_clear();
    }
    grd_tensor_file_close(file);
    free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_run(data, size, check);
    return 0;
}
