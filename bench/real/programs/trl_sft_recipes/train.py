"""Supervised fine-tuning of a small Llama on a cook's questions and answers, with TRL."""
import random
import sys

from datasets import Dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

STEPS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
THINGS = ["rice", "lentils", "aubergine", "salmon", "chicken thighs", "tofu", "mushrooms", "potatoes",
          "beetroot", "barley", "cod", "squash", "leeks", "chickpeas", "spinach", "pork belly"]
WAYS = ["roast", "braise", "steam", "fry", "grill", "bake", "poach", "stew"]
STEPS_TEXT = ["Cut the {a} into pieces of the same size.", "Season with salt and pepper.",
              "Heat two spoons of oil in a heavy pan.", "Add the {a} and {b} and stir for {n} minutes.",
              "Pour in {n}00 ml of stock and bring to the boil.", "Turn the heat down and cover the pan.",
              "Put the tray in the oven at {n}0 degrees.", "Drain the {b} and keep the water.",
              "Taste, and add lemon juice if it is flat.", "Let it rest for {n} minutes before serving.",
              "Scatter chopped herbs over the {a}.", "Serve with bread and a green salad."]


def make_dialogues(n, seed):
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        a, b = rng.sample(THINGS, 2)
        way = rng.choice(WAYS)
        question = rng.choice([f"How do I {way} {a}?", f"What is a good way to {way} {a} with {b}?",
                               f"I have {a} and {b}. Can I {way} them together?"])
        k = min(20, max(1, int(rng.lognormvariate(1.5, 0.7))))
        steps = [f"{i + 1}. " + rng.choice(STEPS_TEXT).format(a=a, b=b, n=rng.randint(2, 20)) for i in range(k)]
        rows.append({"prompt": f"### Question\n{question}\n### Answer\n", "completion": "\n".join(steps)})
    return Dataset.from_list(rows)


def build_tokenizer(data):
    tok = Tokenizer(models.BPE(unk_token="<unk>"))
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tok.decoder = decoders.ByteLevel()
    texts = [p + c for p, c in zip(data["prompt"], data["completion"])]
    tok.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=800, special_tokens=["<pad>", "<s>", "</s>", "<unk>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    return PreTrainedTokenizerFast(tokenizer_object=tok, pad_token="<pad>", bos_token="<s>",
                                   eos_token="</s>", unk_token="<unk>")


def main():
    train, valid = make_dialogues(3000, 0), make_dialogues(200, 1)
    tokenizer = build_tokenizer(train)
    model = LlamaForCausalLM(LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=192, intermediate_size=512, num_hidden_layers=4,
        num_attention_heads=6, num_key_value_heads=2, max_position_embeddings=1024,
        pad_token_id=tokenizer.pad_token_id, bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id))
    args = SFTConfig(
        output_dir="out",
        max_steps=STEPS,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        learning_rate=5e-4,
        lr_scheduler_type="cosine",
        warmup_steps=20,
        logging_steps=10,
        eval_strategy="steps",
        eval_steps=100,
        save_steps=100,
        save_total_limit=1,
        max_length=512,
        gradient_checkpointing=False,
        bf16=False,
        use_cpu=True,
        report_to="tensorboard",
    )
    trainer = SFTTrainer(model=model, args=args, train_dataset=train, eval_dataset=valid,
                         processing_class=tokenizer)
    trainer.train()
    trainer.save_model("out/final")


if __name__ == "__main__":
    main()
