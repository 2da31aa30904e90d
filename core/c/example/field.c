/* Firmware with a field in flash: probabilities and labels of all outputs together, exactly and by cheaper ways, as bits through
 * semihosting. `model.h` is what `gibbsite export --to c` wrote; built as firmware.c says. */
#include "board.h"
#include "gibbsite.h"
#include "model.h"

static gibbsite_model model;
static uint32_t memory[MODEL_MEMORY_EXACT > MODEL_MEMORY_LOOPY ? MODEL_MEMORY_EXACT : MODEL_MEMORY_LOOPY];
static float probabilities[MODEL_LABELS];
static uint32_t labels[MODEL_OUTPUTS];

static void print_labels(const char *heading) {
    print(heading);
    for (uint32_t v = 0; v < MODEL_OUTPUTS; v++) print_hex(labels[v], 2);
    print("\n");
}

int main(void) {
    if (gibbsite_field_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 1;
    gibbsite_field_facts facts;
    if (gibbsite_field_facts_of(&model, &facts) != GIBBSITE_STATUS_OK) return 2;
    if (facts.outputs != MODEL_OUTPUTS || facts.labels != MODEL_LABELS || !facts.exact) return 3;
    if (facts.memory_loopy != MODEL_MEMORY_LOOPY || facts.memory_icm != MODEL_MEMORY_ICM) return 4;
    size_t needed = 0;
    if (gibbsite_field_exact_memory(&model, memory, facts.memory_exact_memory, &needed) != GIBBSITE_STATUS_OK) return 5;
    if (needed != MODEL_MEMORY_EXACT) return 6;
    gibbsite_feature features[] = {{0, 2.5f}, {0, 1.0f}};
    if (gibbsite_field_attribute(&model, (const uint8_t *)"x", 1, &features[0].attribute) != GIBBSITE_STATUS_OK) return 7;
    if (gibbsite_field_attribute(&model, (const uint8_t *)"k=v", 3, &features[1].attribute) != GIBBSITE_STATUS_OK) return 8;
    /* Too little memory is an error, and nothing is written. */
    if (gibbsite_field_marginals(&model, features, 2, 0, probabilities, memory, needed - 1) != GIBBSITE_STATUS_MEMORY) return 9;
    if (gibbsite_field_marginals(&model, features, 2, 0, probabilities, memory, needed) != GIBBSITE_STATUS_OK) return 10;
    print_floats("field_marginals", probabilities, MODEL_LABELS);
    print("\n");
    if (gibbsite_field_best(&model, features, 2, 0, labels, memory, needed) != GIBBSITE_STATUS_OK) return 11;
    print_labels("field_best");
    bool converged = false;
    if (gibbsite_field_loopy(&model, features, 2, 0, 50, probabilities, &converged, memory, MODEL_MEMORY_LOOPY) != GIBBSITE_STATUS_OK)
        return 12;
    print_floats("field_loopy", probabilities, MODEL_LABELS);
    print("\n");
    for (uint32_t v = 0; v < MODEL_OUTPUTS; v++) labels[v] = 0;
    if (gibbsite_field_local(&model, features, 2, labels, 4, probabilities, memory, MODEL_MEMORY_ICM) != GIBBSITE_STATUS_OK) return 13;
    print_floats("field_local", probabilities, 3);
    print("\n");
    if (gibbsite_field_icm(&model, features, 2, 0, 100, labels, memory, MODEL_MEMORY_ICM) != GIBBSITE_STATUS_OK) return 14;
    print_labels("field_icm");
    return 0;
}
