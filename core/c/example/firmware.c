/* Firmware that labels a sequence with a model in flash, whole and as a stream, and prints the labels' numbers through semihosting:
 * `whole NUMBER…`, `lag NUMBER…`. For Arm's MPS2 board with a Cortex-M4 (QEMU: -M mps2-an386); only `board.h`
 * knows the board. `model.h` is what `gibbsite export --to c` wrote, `items.h` what a sensor would deliver:
 *
 *   arm-none-eabi-gcc -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16 -Os -ffreestanding -nostdlib \
 *     -I core/c -T core/c/example/firmware.ld core/c/example/firmware.c libgibbsite.a -o firmware.elf
 */
#include "board.h"
#include "gibbsite.h"
#include "items.h" /* ITEMS, PUSH, features, starts */
#include "model.h"

enum { LAG = 4 };

/* --- labels -------------------------------------------------------------------------------------------------------------- */

static gibbsite_model model;
static gibbsite_decoder decoder;
static uint32_t scores[MODEL_SCORES];
static uint8_t back[MODEL_BACK];

static int label(const char *heading, int lag) {
    static uint8_t labels[ITEMS];
    uint8_t given = 0;
    size_t known = 0, rest = 0;
    if (gibbsite_start(&decoder, &model, lag, scores, MODEL_SCORES, back, MODEL_BACK) != GIBBSITE_STATUS_OK) return 2;
    for (size_t t = 0; t < ITEMS; t++) {
        bool due = false;
        if (PUSH(&decoder, features + starts[t], starts[t + 1] - starts[t], &due, &given) != GIBBSITE_STATUS_OK) return 3;
        if (due) labels[known++] = given;
    }
    if (gibbsite_finish(&decoder, labels + known, ITEMS - known, &rest) != GIBBSITE_STATUS_OK) return 4;
    print(heading);
    for (size_t t = 0; t < known + rest; t++) print_hex(labels[t], 2);
    print("\n");
    return known + rest == ITEMS ? 0 : 5;
}

int main(void) {
    if (gibbsite_open(&model, model_words, MODEL_WORDS) != GIBBSITE_STATUS_OK) return 1;
    int wrong = label("whole", -1);
    return wrong ? wrong : label("lag", LAG);
}
