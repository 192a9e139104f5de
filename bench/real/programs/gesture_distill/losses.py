from torch.nn import functional as F


def distillation_loss(student_logits, teacher_logits, labels, temperature, alpha):
    soft = F.kl_div(F.log_softmax(student_logits / temperature, dim=1),
                    F.log_softmax(teacher_logits / temperature, dim=1),
                    reduction="batchmean", log_target=True) * temperature ** 2
    return alpha * soft + (1 - alpha) * F.cross_entropy(student_logits, labels)


def hint_loss(student_features, teacher_features):
    return F.mse_loss(F.normalize(student_features, dim=1), F.normalize(teacher_features, dim=1))
