/* Firmware that asks a chain in flash how sure its labels are: the marginals of a whole sequence, and with weights in f32 the filtered ones
 * of its last item and the best labellings of its first third, as bits through semihosting. `model.h` is what `gibbsite export --to c` wrote, `items.h` what a sensor would
 * deliver; built as firmware.c says. */
#include "board.h"
#include "gibbsite.h"
#include "items.h" /* ITEMS, FIXED, features, starts */
#include "model.h"

static gibbsite_model model;
static gibbsite_facts facts;

#if FIXED

static int32_t rows[ITEMS * MODEL_LABELS], memory[MODEL_MARGINALS];

static int ask(void) {
    for (size_t t = 0; t < ITEMS; t++)
        if (gibbsite_score_fixed(&model, features + starts[t], starts[t + 1] - starts[t], rows + t * MODEL_LABELS) != GIBBSITE_STATUS_OK)
            return 10;
    /* The functions for floating point refuse this image, and too little memory is an error. */
    gibbsite_filter filter;
    if (gibbsite_filter_start(&filter, &model, (float *)memory, MODEL_MARGINALS) != GIBBSITE_STATUS_SCALAR) return 11;
    if (gibbsite_marginals_fixed(&model, rows, ITEMS, memory, MODEL_MARGINALS - 1) != GIBBSITE_STATUS_MEMORY) return 12;
    if (gibbsite_marginals_fixed(&model, rows, ITEMS, memory, MODEL_MARGINALS) != GIBBSITE_STATUS_OK) return 13;
    print("image_marginals");
    for (size_t i = 0; i < ITEMS * MODEL_LABELS; i++) {
        const float logarithm = (float)rows[i] * facts.unit;
        print_floats(0, &logarithm, 1);
    }
    print("\n");
    return 0;
}

#else

enum { PART = ITEMS / 3, BEST = 5, ROOM = 1024 };
static uint32_t room[ROOM], paths[BEST * PART];
static float rows[ITEMS * MODEL_LABELS], best[BEST], memory[MODEL_MARGINALS], kept[MODEL_FILTER], probabilities[MODEL_LABELS];

static int ask(void) {
    gibbsite_filter filter;
    if (facts.memory_filter != MODEL_FILTER) return 20;
    if (gibbsite_filter_start(&filter, &model, kept, MODEL_FILTER - 1) != GIBBSITE_STATUS_MEMORY) return 21;
    if (gibbsite_filter_start(&filter, &model, kept, MODEL_FILTER) != GIBBSITE_STATUS_OK) return 22;
    for (size_t t = 0; t < ITEMS; t++) {
        float *row = rows + t * MODEL_LABELS;
        if (gibbsite_score(&model, features + starts[t], starts[t + 1] - starts[t], row) != GIBBSITE_STATUS_OK) return 23;
        if (gibbsite_filter_push(&filter, row, MODEL_LABELS, probabilities) != GIBBSITE_STATUS_OK) return 24;
    }
    print_floats("image_filter", probabilities, MODEL_LABELS);
    print("\n");
    size_t needed = 0, found = 0;
    if (gibbsite_n_best_memory(&model, PART, BEST, &needed) != GIBBSITE_STATUS_OK || needed > ROOM) return 27;
    if (gibbsite_n_best(&model, rows, PART, BEST, paths, best, &found, room, needed - 1) != GIBBSITE_STATUS_MEMORY || found) return 28;
    if (gibbsite_n_best(&model, rows, PART, BEST, paths, best, &found, room, needed) != GIBBSITE_STATUS_OK || found != BEST) return 29;
    print_floats("n_best_scores", best, BEST);
    print("\nn_best_labels");
    for (size_t i = PART; i < BEST * PART; i++) print_hex(paths[i], 2);
    print("\n");
    if (gibbsite_marginals(&model, rows, ITEMS, memory, MODEL_MARGINALS - 1) != GIBBSITE_STATUS_MEMORY) return 25;
    if (gibbsite_marginals(&model, rows, ITEMS, memory, MODEL_MARGINALS) != GIBBSITE_STATUS_OK) return 26;
    print_floats("image_marginals", rows, ITEMS * MODEL_LABELS);
    print("\n");
    return 0;
}

#endif

int main(void) {
    if (gibbsite_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 1;
    if (gibbsite_facts_of(&model, &facts) != GIBBSITE_STATUS_OK || facts.memory_marginals != MODEL_MARGINALS) return 2;
    return ask();
}
