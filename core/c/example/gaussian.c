/* Firmware that predicts with a Gaussian CRF in flash: means and deviations, then both when every third output is known, as bits
 * through semihosting. `model.h` is what `gibbsite export --to c` wrote; built as firmware.c says. */
#include "board.h"
#include "gibbsite.h"
#include "model.h"

static gibbsite_model model;
static float memory[MODEL_MEMORY_REVISED];
static float x[MODEL_INPUTS], y[MODEL_OUTPUTS], mean[MODEL_OUTPUTS], deviations[MODEL_OUTPUTS];
static bool known[MODEL_OUTPUTS];

/* What a sensor would deliver. */
static void fill(float *values, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) values[i] = (float)((i + 1) * 7 % 32) / 16.0f - 1.0f;
}

int main(void) {
    if (gibbsite_gaussian_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 1;
    gibbsite_gaussian_facts facts;
    if (gibbsite_gaussian_facts_of(&model, &facts) != GIBBSITE_STATUS_OK) return 2;
    if (facts.inputs != MODEL_INPUTS || facts.outputs != MODEL_OUTPUTS || facts.memory_revised != MODEL_MEMORY_REVISED) return 3;
    fill(x, MODEL_INPUTS);
    fill(y, MODEL_OUTPUTS);
    for (uint32_t i = 0; i < MODEL_OUTPUTS; i++) known[i] = i % 3 == 0;
    /* Too little memory is an error, and nothing is written. */
    if (gibbsite_gaussian_mean(&model, x, MODEL_INPUTS, mean, deviations, memory, MODEL_MEMORY - 1) != GIBBSITE_STATUS_MEMORY) return 4;
    if (gibbsite_gaussian_mean(&model, x, MODEL_INPUTS, mean, deviations, memory, MODEL_MEMORY) != GIBBSITE_STATUS_OK) return 5;
    print_floats("image_gaussian", mean, MODEL_OUTPUTS);
    print_floats(0, deviations, MODEL_OUTPUTS);
    print("\n");
    if (gibbsite_gaussian_revise(&model, x, MODEL_INPUTS, known, y, mean, deviations, memory, MODEL_MEMORY_REVISED) != GIBBSITE_STATUS_OK)
        return 6;
    print_floats("image_given", mean, MODEL_OUTPUTS);
    print_floats(0, deviations, MODEL_OUTPUTS);
    print("\n");
    return 0;
}
