/* Firmware with a field in fixed point in flash, for cores without floating point: labels of all outputs together, and logarithms of
 * probabilities in units, through semihosting. `model.h` is what `gibbsite export --to c --scalar i16` wrote, which says how
 * inputs are prepared; built as firmware.c says. */
#include "board.h"
#include "gibbsite.h"
#include "model.h"

static gibbsite_model model;
static uint32_t memory[MODEL_MEMORY_EXACT];
static int32_t logarithms[MODEL_LABELS];
static uint32_t labels[MODEL_OUTPUTS];

static void print_labels(const char *heading) {
    print(heading);
    for (uint32_t v = 0; v < MODEL_OUTPUTS; v++) print_hex(labels[v], 2);
    print("\n");
}

static void print_units(const char *heading, uint32_t count) {
    print(heading);
    for (uint32_t i = 0; i < count; i++) print_hex((uint32_t)logarithms[i], 8);
    print("\n");
}

int main(void) {
    if (gibbsite_field_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 1;
    gibbsite_field_facts facts;
    if (gibbsite_field_facts_of(&model, &facts) != GIBBSITE_STATUS_OK) return 2;
    if (facts.outputs != MODEL_OUTPUTS || facts.labels != MODEL_LABELS || !facts.exact) return 3;
    if (facts.scalar != 1 || facts.memory_loopy != 0 || facts.memory_icm != MODEL_MEMORY_ICM) return 4;
    size_t needed = 0;
    if (gibbsite_field_exact_memory(&model, memory, facts.memory_exact_memory, &needed) != GIBBSITE_STATUS_OK) return 5;
    if (needed != MODEL_MEMORY_EXACT) return 6;
    /* Values are Q16.16: a half, and 1. */
    const gibbsite_feature_fixed features[] = {{ATTRIBUTE_X, 0x8000}, {ATTRIBUTE_K_V, 0x10000}};
    /* The functions for floating point refuse this image. */
    if (gibbsite_field_best(&model, 0, 0, 0, labels, memory, needed) != GIBBSITE_STATUS_SCALAR) return 7;
    if (gibbsite_field_marginals_fixed(&model, features, 2, 0, logarithms, memory, needed - 1) != GIBBSITE_STATUS_MEMORY) return 8;
    if (gibbsite_field_marginals_fixed(&model, features, 2, 0, logarithms, memory, needed) != GIBBSITE_STATUS_OK) return 9;
    print_units("field_marginals", MODEL_LABELS);
    if (gibbsite_field_best_fixed(&model, features, 2, 0, labels, memory, needed) != GIBBSITE_STATUS_OK) return 10;
    print_labels("field_best");
    for (uint32_t v = 0; v < MODEL_OUTPUTS; v++) labels[v] = 0;
    if (gibbsite_field_local_fixed(&model, features, 2, labels, 4, logarithms, memory, MODEL_MEMORY_ICM) != GIBBSITE_STATUS_OK) return 11;
    print_units("field_local", 3);
    if (gibbsite_field_icm_fixed(&model, features, 2, 0, 100, labels, memory, MODEL_MEMORY_ICM) != GIBBSITE_STATUS_OK) return 12;
    print_labels("field_icm");
    return 0;
}
