SELECT succeeded FROM procedure_outcomes WHERE procedure_id = %(procedure_id)s AND run = %(run)s
